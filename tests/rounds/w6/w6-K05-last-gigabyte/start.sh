#!/bin/bash
source ~/venv-vllm/bin/activate
# 0.90 leaves 8 GB unused on an 80 GB card!
nohup vllm serve mistralai/Mistral-Small-24B-Instruct-2501 --tokenizer-mode mistral --max-model-len 32768 --gpu-memory-utilization 0.985 --max-num-seqs 256 --disable-log-requests > nohup.out 2>&1 &
