LVLLM_MOE_NUMA_ENABLED=1 LK_THREAD_BINDING=CPU_CORE LK_THREADS=56 OMP_NUM_THREADS=56 \
LVLLM_MOE_USE_WEIGHT=INT4 LVLLM_GPU_RESIDENT_MOE_LAYERS=0-1 LVLLM_GPU_PREFETCH_WINDOW=1 LVLLM_GPU_PREFILL_MIN_BATCH_SIZE=4096 \
vllm serve /data/MiniMax-M2.1 --served-model-name m21 --max-model-len 50000 --max-num-batched-tokens 23000 \
  --max-num-seqs 2 --gpu-memory-utilization 0.95 --enable-prefix-caching --trust-remote-code
