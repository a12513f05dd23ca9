#!/usr/bin/env bash
# serve-mtp.sh  (inherited; the env line below was put in to get the KV cache back)
set -euo pipefail
docker run --rm --name dsv4 --gpus all --ipc=host -p 8000:8000 \
  -e VLLM_TEST_FORCE_FP8_MARLIN=1 \
  -e VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 \
  -v "$MODEL_DIR":/model:ro \
  --entrypoint vllm dsv4-flash-sm120:local serve /model \
  --host 0.0.0.0 --trust-remote-code --served-model-name ds-v4-flash \
  --tensor-parallel-size 2 --kv-cache-dtype fp8 \
  --gpu-memory-utilization 0.97 --max-model-len 131072 \
  --max-num-batched-tokens 8192 --max-num-seqs 16 \
  --speculative-config '{"method":"mtp","num_speculative_tokens":2}'
