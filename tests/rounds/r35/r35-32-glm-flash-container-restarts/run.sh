#!/bin/sh
# 0.90 -> 0.80 -> 0.70 -> 0.60, always the same. is the card too small?
docker run -d --name glmflash --restart unless-stopped --gpus all --network host --ipc=host \
  -v /srv/weights/GLM-4.7-Flash-AWQ-4bit:/models/GLM-4.7-Flash-AWQ-4bit:ro \
  -v /srv/cache:/cache \
  vllm/vllm-openai:v0.17.1 vllm serve /models/GLM-4.7-Flash-AWQ-4bit \
    --served-model-name glm-flash --trust-remote-code --port 9527 \
    --gpu-memory-utilization 0.60 --enable-prefix-caching --enable-chunked-prefill \
    --max-model-len 4096 --max_num_batched_tokens 4096 --swap_space 16 \
    --enable-auto-tool-choice --tool-call-parser glm47
