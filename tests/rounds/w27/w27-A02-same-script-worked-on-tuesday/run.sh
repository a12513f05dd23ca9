#!/bin/bash
# GPU 2 gehört diese Woche uns (siehe Kalender)
source /opt/venvs/vllm085/bin/activate
export CUDA_VISIBLE_DEVICES=2
vllm serve /data/models/Qwen2.5-14B-Instruct --port 8021 --dtype bfloat16 \
     --max-model-len 16384 --gpu-memory-utilization 0.9 --disable-log-requests 2>&1 | tee log_$(date +%a | tr A-Z a-z).txt
