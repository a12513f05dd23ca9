#!/bin/bash
# 每天早上启动, GPU 0
export CUDA_VISIBLE_DEVICES=0
nohup python -m vllm.entrypoints.openai.api_server --model /home/share/models/Qwen2.5-7B-Instruct --served-model-name qwen7b \
  --max-model-len 16384 --port 8008 >> nohup.out 2>&1 &
