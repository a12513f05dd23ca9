#!/bin/bash
export VLLM_ATTENTION_BACKEND=FLASHINFER
export CUDA_VISIBLE_DEVICES=2,3
# Wed: default worked, both cards at about 45 GB, died on a long input -> lower it
# Thu: 0.6
python3 -m vllm.entrypoints.openai.api_server --host 0.0.0.0 --port 8081 \
  --model /models/gemma-2-27b-it --dtype bfloat16 --trust-remote-code \
  --tensor-parallel-size 2 --max-model-len 4096 --gpu-memory-utilization 0.6
