#!/bin/bash
export CUDA_VISIBLE_DEVICES=0
exec /opt/llm/venv/bin/vllm serve /opt/llm/models/Qwen2.5-32B-Instruct --served-model-name summarizer --max-model-len 8192 --gpu-memory-utilization 0.9 --port 9000
