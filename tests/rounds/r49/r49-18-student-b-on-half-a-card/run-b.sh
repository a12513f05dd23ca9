#!/bin/bash
# week 11, student B
export CUDA_VISIBLE_DEVICES=MIG-5c0e1f3a-8d7b-5e42-9f10-6b2a77d14c90
python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-Coder-32B-Instruct --port 8002 \
   --gpu-memory-utilization 0.90 --max-model-len 32768 --enable-prefix-caching --enable-chunked-prefill
