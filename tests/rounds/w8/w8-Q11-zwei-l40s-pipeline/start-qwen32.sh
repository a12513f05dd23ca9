#!/usr/bin/env bash
# start-qwen32.sh  (head: ws-l40s-a)
export RAY_DEDUP_LOGS=0 NCCL_SOCKET_IFNAME=eno1 GLOO_SOCKET_IFNAME=eno1
export CUDA_VISIBLE_DEVICES=0
# ws-l40s-b teilt sich die Karte noch mit dem OCR-Dienst -> dort weniger Schichten (Juni, jw)
export VLLM_PP_LAYER_PARTITION=44,20
vllm serve /nfs/models/Qwen2.5-32B-Instruct --pipeline-parallel-size 2 --max-model-len 16384 \
   --distributed-executor-backend ray --disable-log-requests
