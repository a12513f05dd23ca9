#!/bin/sh
# from the A100 box, only the paths changed
docker run -d --name qwen32 --restart on-failure:2 --gpus all --ipc=host -p 8000:8000 -v /srv/models:/models \
  vllm/vllm-openai:v0.7.3 --model /models/Qwen2.5-32B-Instruct --served-model-name qwen32 \
  --tensor-parallel-size 2 --max-model-len 8192 --disable-log-requests
