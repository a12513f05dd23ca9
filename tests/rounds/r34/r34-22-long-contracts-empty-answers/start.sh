# node a (10.8.2.14) and node b (10.8.2.15), one L4 each
# a: ray start --head --port 6379      b: ray start --address 10.8.2.14:6379
python3 -m vllm.entrypoints.openai.api_server --model /srv/models/mistral-nemo-12b-fp8 --served-model-name nemo \
  --host 0.0.0.0 --distributed-executor-backend ray --pipeline-parallel-size 2 \
  --max-model-len 128000 --gpu-memory-utilization 0.87 --disable-log-requests --uvicorn-log-level warning
