#!/bin/sh
# usage: ./serve.sh big-graphs | eager
COMMON="Qwen/Qwen2.5-14B-Instruct-AWQ --max-model-len 16384 --gpu-memory-utilization 0.95 --max-num-seqs 1024"
SIZES="1,2,4,$(seq -s, 8 8 1024)"
case "$1" in
  big-graphs) exec vllm serve $COMMON --compilation-config "{\"cudagraph_mode\":\"FULL_AND_PIECEWISE\",\"cudagraph_capture_sizes\":[$SIZES]}" ;;
  eager)      exec vllm serve $COMMON --enforce-eager ;;
esac
