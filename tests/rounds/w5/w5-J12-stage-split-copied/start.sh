#!/usr/bin/env bash
# taken over from fjord2 (48 GB + 3x 24 GB), works there
export VLLM_PP_LAYER_PARTITION=22,16,14,12
export NCCL_P2P_DISABLE=1
export HF_HOME=/cache/hf
until vllm serve /cache/hf/DeepSeek-R1-Distill-Qwen-32B --pipeline-parallel-size 4 --max-model-len 8192 \
   --gpu-memory-utilization 0.92 --max-num-seqs 16 --port 8055; do echo "exit $? $(date +%T)" >> /var/tmp/llm-exits; sleep 15; done
