#!/bin/sh
# image built from docker/Dockerfile.cpu, 0.19.0
docker run -d --name vllm-cpu --restart unless-stopped --label autoheal=true \
  -v /mnt/nas/models:/models:ro -p 8000:8000 --shm-size 4g \
  -e VLLM_CPU_KVCACHE_SPACE=8 \
  --health-cmd 'curl -fsS http://localhost:8000/health || exit 1' \
  --health-interval 30s --health-timeout 10s --health-start-period 60s --health-retries 5 \
  vllm-cpu:0.19.0 --model /models/Qwen2.5-7B-Instruct --dtype bfloat16 --max-model-len 8192

docker run -d --name autoheal --restart always -e AUTOHEAL_CONTAINER_LABEL=autoheal \
  -v /var/run/docker.sock:/var/run/docker.sock autoheal:1.2.0
