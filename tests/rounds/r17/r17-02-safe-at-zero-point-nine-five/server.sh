TORCH_LLM_ALLREDUCE=1 VLLM_USE_V1=1 CCL_ZE_IPC_EXCHANGE=pidfd VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 VLLM_WORKER_MULTIPROC_METHOD=spawn \
python3 -m vllm.entrypoints.openai.api_server --model /llm/models/DeepSeek-R1-Distill-Qwen-32B \
  --dtype float16 --enforce-eager --port 8001 --trust-remote-code --disable-sliding-window \
  --gpu-memory-utilization 0.95 --no-enable-prefix-caching --max-num-batched-tokens 3072 \
  --max-model-len 30000 --block-size 64 --tensor-parallel-size 4
