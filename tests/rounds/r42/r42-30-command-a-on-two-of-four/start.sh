docker run -d --name command-a --gpus '"device=2,3"' --ipc=host -p 8080:8000 \
  -v /data/models:/models vllm/vllm-openai:v0.8.4 \
  --model /models/c4ai-command-a-03-2025 --served-model-name command-a \
  --tensor-parallel-size 2 --max-model-len 8192 --gpu-memory-utilization 0.95
