#!/bin/bash
# run1
python -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 \
  --gpu-memory-utilization 0.88 --max-num-seqs 512 --cuda-graph-sizes 1024 -O '{"level":3,"full_cuda_graph":true}'
# run2 (as a test): same without -O / sizes, plus --enforce-eager
