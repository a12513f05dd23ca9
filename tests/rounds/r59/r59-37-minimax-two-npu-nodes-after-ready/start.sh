export HCCL_OP_EXPANSION_MODE="AIV"
export HCCL_BUFFSIZE=1200
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
export OMP_NUM_THREADS=1
export TASK_QUEUE_ENABLE=1
vllm serve /mnt/weights/MiniMax-M2.7-w8a8 --served-model-name minimax --host 0.0.0.0 --port 7000 \
  --tensor-parallel-size 8 --data-parallel-size 2 --enable-expert-parallel --async-scheduling \
  --max-num-seqs 128 --max-model-len 131072 --max-num-batched-tokens 16384 --safetensors-load-strategy prefetch \
  --gpu-memory-utilization 0.95 --quantization ascend --trust-remote-code
