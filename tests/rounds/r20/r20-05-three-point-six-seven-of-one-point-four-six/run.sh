#!/bin/bash
# generated, agg mode
vllm serve /models/Qwen3-235B-A22B-FP8 \
  --host 0.0.0.0 --served-model-name qwen3-235b \
  --tensor-parallel-size 2 \
  --gpu-memory-utilization 0.84 \
  --max-num-seqs 512 \
  --trust-remote-code
