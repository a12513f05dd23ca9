#!/bin/bash
docker run --runtime nvidia --gpus all --name glm -it \
  --privileged \
  -e CUDA_VISIBLE_DEVICES=0,1 -e NCCL_DEBUG=INFO \
  -v /data/weights/glm-4-9b-chat:/model:ro \
  -p 8000:8000 registry.local/ai/glm-api:0.3 \
  python3 openai_api_server.py --model /model --max-model-len 8192
