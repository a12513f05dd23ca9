#!/bin/bash
# runs inside the container, started once, never restarted by us
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
export HCCL_BUFFSIZE=512
vllm serve /model/qwen3.6-27B \
  --served-model-name qwen3.6-27b --host 0.0.0.0 --port 8000 \
  --tensor-parallel-size 4 --max-model-len 65536 --max-num-seqs 32 \
  --gpu-memory-utilization 0.80 --enable-prefix-caching \
  --reasoning-parser qwen3 >> /var/log/vllm/vllm_serve.log 2>&1
