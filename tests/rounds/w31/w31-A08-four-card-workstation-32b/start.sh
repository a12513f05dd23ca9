#!/usr/bin/env bash
# ws-lab: /opt/llm/start.sh - last edit 17 Mar (lk): second 32B user group, moved from two cards to four
set -e
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_VISIBLE_DEVICES=0,1,2,3
export HF_HUB_OFFLINE=1
# 12 Mar: --gpu-memory-utilization 0.97 died in the first prefill on two cards, stay below
exec vllm serve /data/hf/Qwen3-32B --served-model-name qwen3-32b --host 0.0.0.0 \
  --tensor-parallel-size 4 --disable-custom-all-reduce \
  --max-model-len 24576 --gpu-memory-utilization 0.92 --reasoning-parser qwen3
