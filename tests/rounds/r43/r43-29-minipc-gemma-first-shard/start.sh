#!/bin/bash
# mini PC "larch", Ryzen AI 9 HX 470, Radeon 890M (gfx1150), 2 x 64 GB DDR5
docker run -d --name gemma26 --device /dev/kfd --device /dev/dri \
  --group-add video --ipc host -p 8000:8000 \
  -e HSA_OVERRIDE_GFX_VERSION=11.5.0 -v /srv/weights:/weights:ro \
  vllm/vllm-openai-rocm:v0.20.1 /weights/gemma-4-26B-A4B-it \
  --served-model-name gemma26 --max-model-len 8192 --max-num-seqs 4 \
  --gpu-memory-utilization 0.8 --enforce-eager
