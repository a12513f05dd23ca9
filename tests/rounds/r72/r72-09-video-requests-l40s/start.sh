#!/bin/bash
export OMP_NUM_THREADS=8
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
vllm serve /models/InternVL3_5-38B \
    --tensor-parallel-size 2 --quantization fp8 --gpu-memory-utilization 0.95 \
    --served-model-name vlm --max-model-len 40960 --trust-remote-code \
    --host 0.0.0.0 --port 8005 --enforce-eager --disable-log-requests
# Qwen-VL on the same two cards takes 40000 tokens of conversation without trouble
