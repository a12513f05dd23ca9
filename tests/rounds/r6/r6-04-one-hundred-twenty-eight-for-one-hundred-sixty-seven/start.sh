# example for 2x3090 from the README, changed to 4 cards: killed as well
LVLLM_MOE_NUMA_ENABLED=1 LVLLM_GPU_PREFETCH_WINDOW=1 LVLLM_GPU_PREFILL_MIN_BATCH_SIZE=4096 \
vllm serve /models/DeepSeek-V4-Flash --tensor-parallel-size 4 --max-model-len 65536 --gpu-memory-utilization 0.85 --max-num-batched-tokens 4096
