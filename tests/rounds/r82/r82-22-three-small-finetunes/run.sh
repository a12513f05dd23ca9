#!/bin/bash
# after example from our other team (they have 14 adapters, one is rank 64)
export CUDA_VISIBLE_DEVICES=4,5,6,7
vllm serve /nas/Qwen2.5-32B-Instruct --host 0.0.0.0 --port 9000 --dtype half \
  --tensor-parallel-size 4 --max-model-len 32768 --gpu-memory-utilization ${1:-0.80} --enforce-eager \
  --enable-lora --max-loras 16 --max-lora-rank 64 \
  --lora-modules claims=/nas/lora/claims-r16 triage=/nas/lora/triage-r16 letters=/nas/lora/letters-r16 \
  --disable-log-requests
