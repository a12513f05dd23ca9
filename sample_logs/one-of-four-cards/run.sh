#!/bin/sh
docker run --rm --gpus all --ipc=host -p 8000:8000 -v /data/hf:/srv/.cache/huggingface \
  vllm/vllm-openai:v0.16.0 --model Qwen/Qwen3-32B --max-model-len 16384 --enable-auto-tool-choice --tool-call-parser hermes
