#!/usr/bin/env bash
set -e
LEN=${1:-779424}
docker run --rm --name ds41 --gpus all --ipc=host --shm-size 64g --ulimit memlock=-1 \
  -v /nvme/models:/models -p 8100:8000 \
  -e NCCL_P2P_LEVEL=SYS -e VLLM_LOGGING_LEVEL=INFO \
  ds-sm89:0.28.1rc1.dev517 \
  vllm serve /models/DeepSeek-V4.1-Flash --served-model-name ds41-flash \
   --trust-remote-code --tokenizer-mode deepseek_v4 \
   --tensor-parallel-size 8 --enable-expert-parallel \
   --kv-cache-dtype fp8 --block-size 256 \
   --max-model-len "$LEN" --max-num-seqs 4 --max-num-batched-tokens 4096 \
   --gpu-memory-utilization 0.92 2>&1 | tee vllm-$LEN.log
