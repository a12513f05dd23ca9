#!/bin/bash
# /opt/serve/start.sh on gpuA, changed 2025-08-05 (was the 3-node test with the GH200 as last stage)
export RAY_ADDRESS=192.168.40.11:6379
export GLOO_SOCKET_IFNAME=bond0 NCCL_SOCKET_IFNAME=bond0 NCCL_IB_HCA=mlx5_0
export VLLM_PP_LAYER_PARTITION="16,16,16,32"
export VLLM_LOGGING_LEVEL=INFO
exec /opt/vllm/bin/vllm serve meta-llama/Llama-3.3-70B-Instruct \
   --pipeline-parallel-size 4 --distributed-executor-backend ray \
   --max-model-len 131072 --download-dir /data/hf
