#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
python -m vllm.entrypoints.openai.api_server \
  --model /vepfs/ckpt/Llama-3.2-11B-Vision-Instruct \
  --tensor-parallel-size 2 --max-model-len 4096 \
  --limit-mm-per-prompt image=1 --gpu-memory-utilization 0.85 --enforce-eager
