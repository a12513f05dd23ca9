#!/usr/bin/env bash
# nodo3, 4x A10. copiado de nodo1 (2x A6000 + 2x 3090) por Ruben, sep 2026
set -euo pipefail
export CUDA_VISIBLE_DEVICES=0,1,2,3
export VLLM_PP_LAYER_PARTITION="20,16,14,14"
export HF_HUB_OFFLINE=1
source /opt/venvs/vllm-0.10/bin/activate
exec vllm serve /data/hf/Qwen2.5-32B-Instruct --pipeline-parallel-size 4 \
     --gpu-memory-utilization 0.92 "$@"
