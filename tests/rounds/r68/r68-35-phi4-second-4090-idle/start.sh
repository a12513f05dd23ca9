#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
vllm serve microsoft/phi-4 \
  --host 0.0.0.0 --port 8000 \
  --gpu-memory-utilization 0.7 \
  --max-model-len 4096 \
  --max-num-seqs 8 --enforce-eager
