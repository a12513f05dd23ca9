#!/usr/bin/env bash
# machine-llm.slice: MemoryMax=72G, MemorySwapMax=0 (only this container lives there)
podman run -d --name qwen72 --restart=on-failure:2 --cgroup-parent=machine-llm.slice --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 \
  --shm-size=10g -v /models:/models:ro \
  docker.io/vllm/vllm-openai:v0.7.3 --model /models/Qwen2.5-72B-Instruct-AWQ --tensor-parallel-size 2 \
  --swap-space 32 --max-model-len 32768 --served-model-name qwen72 --enforce-eager
