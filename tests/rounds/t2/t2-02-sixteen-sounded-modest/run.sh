#!/bin/bash
# ws-quad, 4x 4090, no docker
export CUDA_VISIBLE_DEVICES=0,1,2,3
vllm serve /data/hf/Qwen2.5-72B-Instruct -tp 4 \
   --cpu-offload-gb 16 \
   --max-model-len 6144 --max-num-seqs 8 --enforce-eager
