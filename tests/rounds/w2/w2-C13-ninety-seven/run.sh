#!/usr/bin/env bash
export CUDA_VISIBLE_DEVICES=1
nohup python -m vllm.entrypoints.openai.api_server --model internlm/internlm2_5-7b-chat --trust-remote-code --served-model-name helpdesk --gpu-memory-utilization 0.97 --disable-log-requests > helpdesk.out 2>&1 &
