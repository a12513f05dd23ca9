export NCCL_DEBUG=INFO
export NCCL_SOCKET_IFNAME=docker0
ray start --head --node-ip-address=10.88.0.21 --port=6379
vllm serve /models/DeepSeek-R1-Distill-Llama-70B --tensor-parallel-size 4 --pipeline-parallel-size 2 \
  --distributed-executor-backend ray --max-model-len 8192 --gpu-memory-utilization 0.92
