podman run -d --name llama3 --device nvidia.com/gpu=all -p 8000:8000 -v hf:/hf -e HF_HOME=/hf \
  docker.io/vllm/vllm-openai:v0.4.1 --model meta-llama/Meta-Llama-3-8B-Instruct \
  --gpu-memory-utilization 0.80 --enforce-eager --disable-log-requests
# desktop with one RTX 3090, 64 GB RAM. 0.80 because the screen hangs on the same card
