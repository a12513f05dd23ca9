#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1,2,3
vllm serve /data/models/DeepSeek-V4-Flash-0731 \
  --trust-remote-code --tensor-parallel-size 4 \
  --kv-cache-dtype fp8 --block-size 128 \
  --max-model-len 1048576 --max-num-seqs 2 --max-num-batched-tokens 4096 \
  --gpu-memory-utilization 0.95 \
  --speculative-config '{"method":"dspark","num_speculative_tokens":7}' \
  --port 8000
