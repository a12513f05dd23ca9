#!/bin/bash
# image vllm/vllm-openai:v0.15.1
# same on dgx-b with --node-rank 1 --headless
vllm serve /models/deepseek-v3.1 --tensor-parallel-size 8 --pipeline-parallel-size 2 \
  --max-model-len 65536 --block-size 64 --served-model-name ds31 \
  --nnodes 2 --node-rank 0 --master-addr 10.9.0.11
