vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 \
  --speculative-model meta-llama/Llama-3.1-8B-Instruct --num-speculative-tokens 4 --speculative-draft-tensor-parallel-size 1 \
  --gpu-memory-utilization 0.99 --max-model-len 8192 --use-v2-block-manager
