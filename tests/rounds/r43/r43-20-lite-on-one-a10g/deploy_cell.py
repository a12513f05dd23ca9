# cell 6 of the notebook
env = {
    "HF_MODEL_ID": "falcon-lite-40b-gptq",      # 40B, 4 bit, group 128, from our bucket
    "SM_NUM_GPUS": json.dumps(num_gpu),         # 1
    "HF_MODEL_QUANTIZE": "gptq",
    "TRUST_REMOTE_CODE": "true",
    "MAX_INPUT_LENGTH": json.dumps(11000),
    "MAX_TOTAL_TOKENS": json.dumps(12000),
    "MAX_BATCH_PREFILL_TOKENS": json.dumps(11000),
}
model.deploy(initial_instance_count=1, instance_type=instance_type, container_startup_health_check_timeout=900)
