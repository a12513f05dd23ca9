#!/bin/bash
# both halves of the pair live on the single card of this workstation
set -e
trap 'kill 0' EXIT

python -m dynamo.frontend --http-port 8000 &

CUDA_VISIBLE_DEVICES=0 python3 -m dynamo.vllm \
  --model Qwen/Qwen3-0.6B \
  --enforce-eager \
  --gpu-memory-utilization 0.38 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' &

sleep 35

CUDA_VISIBLE_DEVICES=0 VLLM_NIXL_SIDE_CHANNEL_PORT=20097 python3 -m dynamo.vllm \
  --model Qwen/Qwen3-0.6B \
  --enforce-eager \
  --gpu-memory-utilization 0.38 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' \
  --is-prefill-worker &
wait
