#!/bin/sh
# systemd-nspawn container "llm14b", card 2 of the box
export CUDA_VISIBLE_DEVICES=2
exec vllm serve Qwen/Qwen2.5-14B-Instruct --served-model-name base --max-model-len 32768 \
  --gpu-memory-utilization 0.9 \
  --enable-lora --max-loras 4 --max-lora-rank 256 --max-cpu-loras 16 \
  --lora-modules claims=/adapters/claims triage=/adapters/triage letters=/adapters/letters notes=/adapters/notes
