# both on device 1, image with vllm 0.2.6
docker run -d --gpus '"device=1"' --shm-size=10.24gb -p 5001:5001 h2o-rt:0.1.0 -m vllm.entrypoints.openai.api_server --port=5001 --model=defog/sqlcoder2 --max-num-batched-tokens 8192 --max-model-len=8192 --gpu-memory-utilization 0.4
sleep 300
docker run -d --gpus '"device=1"' --shm-size=10.24gb -p 5002:5002 h2o-rt:0.1.0 -m vllm.entrypoints.openai.api_server --port=5002 --model=HuggingFaceH4/zephyr-7b-beta --max-num-batched-tokens 4096 --gpu-memory-utilization 0.4
