# from the "deploy" button of the model page
hub = {
    'HF_MODEL_ID': 'flozi00/Llama-2-13B-german-assistant-v2',
    'SM_NUM_GPUS': json.dumps(1),
}
huggingface_model = HuggingFaceModel(
    image_uri=get_huggingface_llm_image_uri("huggingface", version="0.9.3"),
    env=hub, role=role)
predictor = huggingface_model.deploy(
    initial_instance_count=1,
    instance_type="ml.g5.4xlarge",      # was ml.g5.2xlarge: 32 GB of memory; now 64 GB
    container_startup_health_check_timeout=300)
