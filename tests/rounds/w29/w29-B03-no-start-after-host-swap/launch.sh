#!/bin/bash
# run on host A (10.60.1.21) once both hosts show up in `ray status`
set -a; . /opt/vllm/vllm-ray.env; set +a
exec vllm serve /data/hf/Qwen2.5-72B-Instruct --served-model-name qwen72 \
  --max-model-len 32768 --pipeline-parallel-size 4 --distributed-executor-backend ray \
  --gpu-memory-utilization 0.94 --max-num-seqs 64 --max-num-batched-tokens 2048
