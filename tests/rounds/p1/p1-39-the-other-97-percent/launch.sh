vllm serve /models/Qwen2.5-32B-Instruct --served-model-name qwen32 --tensor-parallel-size 4 \
  --gpu-memory-utilization 0.9 --enable-prefix-caching --max-model-len 16384 --max-num-seqs 512 \
  --max-num-batched-tokens 16384 --kv-cache-metrics --kv-cache-metrics-sample 1.0 --port 8000
# image rocm/vllm 0.27.1, 4x MI300X 192 GB
