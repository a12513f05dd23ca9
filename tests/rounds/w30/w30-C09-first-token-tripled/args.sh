#!/bin/sh
# coder-1, host ws-gpu-3
exec vllm serve /data/Qwen3-Coder-30B-A3B-Instruct-FP8 \
  --served-model-name coder \
  --max-model-len 65536 \
  --enable-auto-tool-choice --tool-call-parser qwen3_coder \
  --kv-cache-metrics
# 2026-05: tried --kv-offloading-size 64, reverted, host has 96 GB only
