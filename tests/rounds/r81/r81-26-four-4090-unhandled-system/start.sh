docker run -d --name qwen32 --gpus all -p 8000:8000 \
  -e NCCL_DEBUG=INFO -e NCCL_P2P_DISABLE=1 \
  -v /tank/models:/models:ro \
  vllm/vllm-openai:v0.9.2 \
  --model /models/Qwen2.5-32B-Instruct-AWQ --tensor-parallel-size 4 \
  --max-model-len 16384 --gpu-memory-utilization 0.88
