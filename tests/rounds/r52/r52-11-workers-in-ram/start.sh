export OMP_PROC_BIND=false
export OMP_NUM_THREADS=10
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
export LD_PRELOAD=/usr/lib64/libjemalloc.so.2:$LD_PRELOAD
export HCCL_BUFFSIZE=1024
vllm serve /data/DeepSeek-V4-Flash --max-model-len 133072 --max-num-batched-tokens 8192 --gpu-memory-utilization 0.9 \
  --max-num-seqs 32 --tensor-parallel-size 8 --enable-expert-parallel --safetensors-load-strategy prefetch \
  --enable-prefix-caching --quantization ascend --block-size 128 --async-scheduling \
  --speculative-config '{"num_speculative_tokens": 1,"method": "mtp","enforce_eager": true}' --port 22101
# container: --memory 768g --shm-size 64g
