#!/bin/bash
# vLLM 0.10.1.1, 8x A100-SXM4-80GB
vllm serve zai-org/GLM-4.5V --tensor-parallel-size 8 --gpu-memory-utilization 0.5 \
  --max-model-len 16384 --limit-mm-per-prompt '{"image": 1, "video": 0}' --allowed-local-media-path /data/charts
