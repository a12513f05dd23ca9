#!/bin/bash
# on ai-h100-2x, container of ai-dynamo 1.2.1 (vllm 0.20.1, CUDA 12.8)
MODEL=Qwen/Qwen3.5-35B-A3B-FP8
python3 -m dynamo.frontend --http-port 8000 > logs/frontend.log 2>&1 &

CUDA_VISIBLE_DEVICES=0 python3 -m dynamo.vllm --model $MODEL --tensor-parallel-size 1 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' \
  --disaggregation-mode prefill > logs/prefill.log 2>&1 &

VLLM_NIXL_SIDE_CHANNEL_PORT=20097 CUDA_VISIBLE_DEVICES=1 python3 -m dynamo.vllm --model $MODEL --tensor-parallel-size 1 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' \
  --disaggregation-mode decode > logs/decode.log 2>&1 &
wait
