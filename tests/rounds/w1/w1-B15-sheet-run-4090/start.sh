#!/usr/bin/env bash
# throughput run: one seat per row of the sheet
source /opt/venv/bin/activate
vllm serve Qwen/Qwen3-4B --max-model-len 4096 --max-num-seqs 8192 --max-num-batched-tokens 16384 --host 0.0.0.0 >serve.out 2>&1
