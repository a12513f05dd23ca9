#!/usr/bin/env bash
set -e
source /opt/vllm/venv/bin/activate
SIZES=$(seq -s, 1 512)
exec vllm serve /srv/llm/Qwen3-14B --served-model-name qwen14 --gpu-memory-utilization 0.86 --max-num-seqs 512 \
  --compilation-config "{\"cudagraph_capture_sizes\": [$SIZES]}"
# was until 14.4.:
# exec vllm serve /srv/llm/Qwen3-14B --served-model-name qwen14 --gpu-memory-utilization 0.86 --max-num-seqs 256
