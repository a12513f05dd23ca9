#!/bin/bash
# both boxes: ec2 g6.12xlarge-like, 4x L4. second box was 4x A10G until last week
export VLLM_HOST_IP=$(hostname -I | awk '{print $1}')
export NCCL_SOCKET_IFNAME=ens5
export GLOO_SOCKET_IFNAME=ens5
export VLLM_PP_LAYER_PARTITION=34,46
export RAY_DEDUP_LOGS=0
ray start --head --port 6379 --num-gpus 4
sleep 40
vllm serve /models/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --pipeline-parallel-size 2 --distributed-executor-backend ray \
  --max-model-len 16384 --max-num-batched-tokens 2048 --max-num-seqs 64 --enforce-eager
