def deploy_vllm(model_name, model_id, machine_type="g2-standard-12", accelerator_type="NVIDIA_L4", accelerator_count=1):
    vllm_args = [
        "python", "-m", "vllm.entrypoints.api_server",
        "--host=0.0.0.0", "--port=7080",
        f"--model={model_id}",                       # bucket folder with the merged fine-tune
        "--tensor-parallel-size=1",
        "--max-model-len=8192",                      # also tried 4096 and 2048
        "--dtype=bfloat16",
        "--gpu-memory-utilization=0.97",             # card is only 24 GB so use what is there
        "--enable-chunked-prefill",
        "--disable-log-stats",
    ]
    model = aiplatform.Model.upload(display_name=model_name, serving_container_image_uri=VLLM_IMAGE,
        serving_container_args=vllm_args, serving_container_ports=[7080],
        serving_container_predict_route="/generate", serving_container_health_route="/ping",
        serving_container_shared_memory_size_mb=16 * 1024, serving_container_deployment_timeout=7200)
    model.deploy(endpoint=endpoint, machine_type=machine_type, accelerator_type=accelerator_type,
        accelerator_count=accelerator_count, deploy_request_timeout=1800)

# FailedPrecondition: 400 Error: model server exited unexpectedly. Model server logs can be found at <link>
# (link opens the log viewer with an empty result; this export is from the raw container_logs)
