#!/bin/bash
# leave room for the two rerankers that will come to this card next month
export CUDA_VISIBLE_DEVICES=1
exec python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-14B-Instruct \
  --gpu-memory-utilization 0.20 --max-model-len 32768 --port 8000
