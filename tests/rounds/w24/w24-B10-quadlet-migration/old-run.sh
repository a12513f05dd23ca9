# what we used until tuesday (docker-ce, same box)
docker run -d --name llama70 --restart unless-stopped --gpus all --ipc=host \
  -v /srv/models:/models:ro -p 8000:8000 vllm/vllm-openai:v0.10.2 \
  /models/Llama-3.1-70B-Instruct-FP8 --host 0.0.0.0 --served-model-name llama70 \
  --tensor-parallel-size 4 --max-model-len 16384 --disable-uvicorn-access-log
