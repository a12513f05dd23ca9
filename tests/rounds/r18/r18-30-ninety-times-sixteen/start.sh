nohup python -m vllm.entrypoints.openai.api_server \
  --model /models/DeepSeek-R1-BF16 --port 2000 --dtype bfloat16 \
  --tensor-parallel-size 16 --trust-remote-code \
  --gpu-memory-utilization 0.975 --distributed-executor-backend=mp \
  --max-model-len 80000 --enforce-eager --block-size 16 \
  --served-model-name dsr1bf16 &> /models/start.log &
