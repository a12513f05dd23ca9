#!/bin/bash
export CUDA_VISIBLE_DEVICES=0
python3 -m sglang.launch_server --model-path /data/Qwen3-30B-A3B-Instruct-2507-FP8 \
  --host 0.0.0.0 --port 30000 --mem-fraction-static 0.87 --context-length 131072 \
  --tool-call-parser qwen25 --enable-cache-report --log-level info
