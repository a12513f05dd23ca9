#!/bin/bash
# 4 cards x 40 = 160 G for a 140 G model
export CUDA_VISIBLE_DEVICES=0,1,2,3
nohup python -m vllm.entrypoints.openai.api_server --model /data0/llms/Meta-Llama-3.1-70B-Instruct \
  --device auto --dtype auto --max-model-len 4096 --api-key $KEY &
