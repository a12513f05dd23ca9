#!/bin/sh
# util raised from 0.90 on 21 Nov, pool was "too small on paper"
exec podman run --rm --name small24 --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 --shm-size 16g vllm/vllm-openai:v0.11.2 \
  mistralai/Mistral-Small-24B-Instruct-2501 --tensor-parallel-size 2 --max-model-len 32768 --gpu-memory-utilization 0.98 --max-num-seqs 48
