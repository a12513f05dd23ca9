vllm serve Qwen/Qwen3-VL-235B-A22B-Instruct --tensor-parallel-size 8 --max-model-len 131072 \
  --limit-mm-per-prompt '{"image": 40}' --max-num-batched-tokens 32768 --skip-mm-profiling \
  --gpu-memory-utilization 0.9 --async-scheduling
