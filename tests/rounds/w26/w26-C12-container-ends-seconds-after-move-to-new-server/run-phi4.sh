#!/bin/sh
# moved from the ubuntu box 29.7., same line as there
exec podman run --replace --name phi4 --device nvidia.com/gpu=0 --shm-size 16g -p 8000:8000 \
  -v /home/svcllm/models:/models:ro docker.io/vllm/vllm-openai:v0.25.1 \
  /models/phi-4 --served-model-name phi4 --max-model-len 16384 --gpu-memory-utilization 0.95 --max-num-seqs 512
