export LMCACHE_CONFIG_FILE=/etc/lmcache/local-cpu.yaml   # chunk_size 256, local_device cpu
export CUDA_VISIBLE_DEVICES=0
lmcache_vllm serve meta-llama/Llama-3.1-8B-Instruct \
  --gpu-memory-utilization 0.6 --max-model-len 131072 \
  --enable-chunked-prefill --max-num-batched-tokens 65536 --port 8100
