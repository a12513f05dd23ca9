export HF_HUB_OFFLINE=1
vllm serve microsoft/phi-4 --max-model-len 16384 --gpu-memory-utilization 0.97  # was .9 until Friday, raised for more concurrency
