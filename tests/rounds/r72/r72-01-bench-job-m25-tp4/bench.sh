#!/usr/bin/env bash
# minimax m2.5 fp8, h100, image vllm/vllm-openai:v0.16.0
# sweep: TP=4, concurrency 4 8 16 32 64, shapes 1k1k 1k8k 8k1k
MODEL=MiniMaxAI/MiniMax-M2.5
vllm serve $MODEL --port 8888 \
  --tensor-parallel-size 4 \
  --gpu-memory-utilization 0.95 \
  --max-model-len 10240 \
  --no-enable-prefix-caching \
  --trust-remote-code > server.log 2>&1 &
until curl -sf localhost:8888/health; do sleep 5; done
for c in 4 8 16 32 64; do ./run_bench.sh $c; done
