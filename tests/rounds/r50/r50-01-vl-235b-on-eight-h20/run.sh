#!/bin/bash
# node h20-04, 8 x H20 96G, nothing else scheduled here
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
python3 -m vllm.entrypoints.openai.api_server \
  --model /data/models/Qwen3-VL-235B-A22B-Instruct \
  --host 0.0.0.0 --port 80 --seed 0 --trust-remote-code \
  --tensor-parallel-size 8 --enable-expert-parallel --mm-encoder-tp-mode data \
  --distributed-executor-backend mp --dtype bfloat16 --quantization fp8 \
  --gpu-memory-utilization 0.70 --max-model-len 8192
