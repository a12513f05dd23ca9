#!/bin/bash
# node 0 (10.4.8.21); node 1 has --headless --data-parallel-start-rank 1 and no host/port
export HCCL_IF_IP=10.4.8.21 GLOO_SOCKET_IFNAME=enp67s0f5 TP_SOCKET_IFNAME=enp67s0f5 HCCL_SOCKET_IFNAME=enp67s0f5
export HCCL_BUFFSIZE=512 OMP_PROC_BIND=false OMP_NUM_THREADS=10
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
vllm serve /mnt/weights/GLM-5.1-w8a8 --host 0.0.0.0 --port 8077 --served-model-name glm-5.1 --trust-remote-code --quantization ascend \
  --data-parallel-size 2 --data-parallel-size-local 1 --data-parallel-address 10.4.8.21 --data-parallel-rpc-port 13389 \
  --tensor-parallel-size 8 --enable-expert-parallel --max-model-len 65536 --max-num-seqs 16 --max-num-batched-tokens 4096 \
  --gpu-memory-utilization 0.80
