#!/usr/bin/env bash
# /usr/local/sbin/run-coder.sh, started by coder.service (quadlet came later)
podman run -d --replace --name coder --device nvidia.com/gpu=0 --ipc=host -p 8000:8000 \
  -v /var/cache/vllm:/var/cache/vllm -e HF_HOME=/var/cache/hf -v /srv/hf:/var/cache/hf:Z \
  docker.io/vllm/vllm-openai:v0.21.0 Qwen/Qwen3-14B-FP8 --host 0.0.0.0 --max-model-len 32768 \
  --served-model-name coder --enable-auto-tool-choice --tool-call-parser hermes \
  --kv-cache-metrics --kv-cache-metrics-sample 0.05 --enable-prompt-tokens-details
