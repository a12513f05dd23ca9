#!/bin/bash
# intern chat, tenant A
docker run -d --name intern --gpus '"device=0"' --memory 40g --shm-size 4g -p 8000:8000 \
  vllm/vllm-openai:v0.31.0 internlm/internlm3-8b-instruct --trust-remote-code --max-model-len 16384 --max-num-seqs 64 --served-model-name intern
