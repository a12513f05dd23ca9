#!/bin/bash
# machine louee, volume 60 Go monte sur /data
set -u
B=https://depot.interne.example/llm/Qwen2.5-72B-Instruct-AWQ
D=/data/models/Qwen2.5-72B-Instruct-AWQ
mkdir -p $D && cd $D
for f in config.json generation_config.json merges.txt model.safetensors.index.json tokenizer.json tokenizer_config.json vocab.json; do wget -q -c $B/$f || true; done
for i in $(seq -w 1 11); do wget -q -c $B/model-000$i-of-00011.safetensors || true; done
docker run -d --name qwen72 --gpus all --shm-size 16g -p 8000:8000 -v /data:/data --restart on-failure:2 \
  vllm/vllm-openai:v0.8.5 --model $D --served-model-name qwen72 --quantization awq_marlin --max-model-len 16384 --disable-log-requests
