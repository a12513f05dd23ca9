#!/bin/bash
# 70B on the single H100, long window for the contract team
export VLLM_ATTENTION_BACKEND=FLASHINFER
exec python3 -m vllm.entrypoints.openai.api_server \
  --model /data/models/llama-3.1-70b-instruct-w4a16 \
  --served-model-name contracts-70b \
  --max-model-len 127728 \
  --enable-prefix-caching \
  --enable-chunked-prefill False \
  --kv-cache-dtype fp8_e4m3 \
  --gpu-memory-utilization 0.95 \
  --port 8080
