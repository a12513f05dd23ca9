#!/bin/bash
# both models live on the one L40S, only one is meant to be awake at a time
export CUDA_VISIBLE_DEVICES=0
VLLM_SERVER_DEV_MODE=1 vllm serve /mnt/models/qwen2.5-coder-7b --served-model-name coder --port 8080 --enable-sleep-mode --gpu-memory-utilization 0.8 --max-model-len 16384 > /logs/coder-8080.log 2>&1 &
until curl -sf localhost:8080/health; do sleep 3; done
curl -s -X POST 'localhost:8080/sleep?level=1'
until curl -s localhost:8080/is_sleeping | grep -q true; do sleep 1; done
vllm serve /mnt/models/llama-3.1-8b-instruct --served-model-name chat --port 8081 --enable-sleep-mode --gpu-memory-utilization 0.8 --max-model-len 16384 > /logs/chat-8081.log 2>&1 &
until curl -sf localhost:8081/health; do sleep 3; done
exec python3 /app/switcher.py     # puts the awake one to sleep, then wakes the other, on demand
