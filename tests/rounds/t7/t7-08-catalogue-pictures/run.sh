#!/bin/sh
# nightly captions, gpu-b2 (4x A100 80GB, 1 TB of RAM, shared with the trainers)
docker run -d --name captions --gpus all --network host --memory 64g --memory-swap 64g \
  -v /data/hf:/hf -e HF_HOME=/hf vllm/vllm-openai:v0.13.0 \
  --model Qwen/Qwen2.5-VL-7B-Instruct --data-parallel-size 4 --api-server-count 4 \
  --max-model-len 16384 --limit-mm-per-prompt '{"image": 12}'
# text_smoke     ok  19 Jan, 20 Jan
# text_long      ok  19 Jan, 20 Jan
# pictures_12    lost an engine 19 Jan 21:51 (DP0), 20 Jan 21:42 (DP2)
# Ludo: known, /dev/shm is 64 MB and the ring buffers in it are 4 x 240. --shm-size 16g. (not tried yet)
# docker inspect says OOMKilled=false, dmesg needs root and I am not
