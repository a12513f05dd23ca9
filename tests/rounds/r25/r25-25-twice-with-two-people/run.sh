docker run -d --restart unless-stopped --gpus all --ipc host -p 8000:8000 \
  vllm-b12x:0.26.1rc0 serve /m/DeepSeek-V4-Flash-Vision-Exp --tensor-parallel-size 2 \
  --max-model-len 1048576 --max-num-seqs 4 --max-num-batched-tokens 4096 --gpu-memory-utilization 0.975 \
  --kv-cache-dtype fp8 --block-size 256 --async-scheduling --enable-prefix-caching \
  --speculative-config '{"method":"dspark","num_speculative_tokens":3}'
