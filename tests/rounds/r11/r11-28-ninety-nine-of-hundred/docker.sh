docker run -d --restart=always --runtime=nvidia --gpus '"device=0,1,2,3,4,5,6,7"' --shm-size=10.24gb -p 5020:5020 --network host --name l405 vllm/vllm-openai:v0.5.3 \
  --port=5020 --model=meta-llama/Meta-Llama-3.1-405B-Instruct-FP8 --seed 1234 --tensor-parallel-size=8 --max-log-len=100 \
  --max-model-len=65536 --max_num_seqs=16 --gpu-memory-utilization 0.99 --enable_chunked_prefill=True
