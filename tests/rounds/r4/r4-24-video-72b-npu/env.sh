export PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:256
vllm serve Qwen2.5-VL-72B-Instruct --served-model-name qwen2.5-vl-72b --max-model-len 65536 --tensor-parallel-size 8 --gpu-memory-utilization 0.9
