#!/usr/bin/env bash
# 2x RTX 3090, 128 GB DDR4, 64 GB swap file
export KV_CACHE_MEMORY_BYTES=${KV_CACHE_MEMORY_BYTES:-4831838208}
export VLLM_WNA16_STATIC_HOT_CACHE_SIZE=${HOT:-96}
exec vllm serve /models/qwen3.8-flash-next-w4a16 --tensor-parallel-size 2 \
  --disable-custom-all-reduce --max-model-len 262144 --max-num-seqs 4 \
  --max-num-batched-tokens 2048 --kv-cache-memory-bytes "$KV_CACHE_MEMORY_BYTES"
