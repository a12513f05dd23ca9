#!/bin/sh
# copied from the V0 unit, chunked prefill was off there because of the LoRA branch
exec vllm serve Qwen/Qwen2.5-Coder-7B-Instruct --max-model-len 32768 \
  --no-enable-chunked-prefill --max-num-batched-tokens 8192 --swap-space 16 \
  --no-enable-prefix-caching --gpu-memory-utilization 0.9
