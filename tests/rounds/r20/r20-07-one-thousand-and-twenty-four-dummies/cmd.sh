vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 16000 --gpu-memory-utilization 0.95 --port 8080
