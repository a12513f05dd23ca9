#!/bin/bash
# started on l40-a (10.77.0.11), l40-b (10.77.0.12) has joined the Ray cluster before
export GLOO_SOCKET_IFNAME=bond0 NCCL_SOCKET_IFNAME=bond0 NCCL_IB_DISABLE=1
export VLLM_USE_V1=1
# l40-a also ran the reranker until June; see wiki/layers
export VLLM_PP_LAYER_PARTITION="33,47"
exec vllm serve /models/Qwen2.5-72B-Instruct --served-model-name q72 --port 8080 \
  --distributed-executor-backend ray --pipeline-parallel-size 2 --tensor-parallel-size 2 \
  --max-model-len 16384 --gpu-memory-utilization 0.92
