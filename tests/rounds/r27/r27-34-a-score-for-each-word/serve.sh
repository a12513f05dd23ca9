exec vllm serve /models/Qwen3-32B-AWQ --max-model-len 16384 --max-num-batched-tokens 4096 --max-num-seqs 16 --gpu-memory-utilization 0.92 --port 8000
