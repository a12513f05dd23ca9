export RAY_DEDUP_LOGS=0
export VLLM_PP_LAYER_PARTITION=18,19,19,24   # from the old pair, where the 4th card was the 96 GB one
export NCCL_SOCKET_IFNAME=bond0
vllm serve --model /mnt/m/Llama-3.3-70B-Instruct --max-model-len 16384 --pipeline-parallel-size 4 --distributed-executor-backend ray --gpu-memory-utilization ${UTIL:-0.9}
