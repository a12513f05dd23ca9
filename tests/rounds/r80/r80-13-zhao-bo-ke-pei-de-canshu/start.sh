#!/bin/bash
# 参数照着博客里"7GB显存"那一节抄的
export CUDA_VISIBLE_DEVICES=0
source /home/vllm/miniconda3/etc/profile.d/conda.sh && conda activate vllm
python -m vllm.entrypoints.openai.api_server \
  --model /home/vllm/autodl-tmp/DeepSeek-R1-Distill-Qwen-7B \
  --served-model-name ds-r1-7b \
  --dtype bfloat16 \
  --max-model-len 4096 \
  --cpu-offload-gb 8 \
  --gpu-memory-utilization 0.22 \
  --enforce-eager \
  --port 6006
