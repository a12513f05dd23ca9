#!/bin/sh
export VLLM_USE_V1=1
exec vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 2 --max-model-len 8192 --max-num-seqs 1024
