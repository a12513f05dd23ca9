#!/bin/sh
# start on court-dgx (4 cards)
exec docker run -d --restart unless-stopped --name minutes --gpus all --ipc=host --memory 80g --memory-swap 80g \
  -v /models:/models:ro -p 8000:8000 vllm/vllm-openai:v0.6.6.post1 \
  --model /models/Yi-34B-Chat --served-model-name minutes --tensor-parallel-size 4 --max-num-seqs 64 --swap-space 24
