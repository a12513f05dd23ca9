#!/bin/bash
#SBATCH --gres=gpu:a100:2
#SBATCH --cpus-per-task=32
#SBATCH --mem=240G
#SBATCH --time=08:00:00
# 8B version of this script ran fine all week, only the model name and TP changed
export HF_HUB_OFFLINE=1
nvidia-smi > nvidia-smi-before.txt
lm_eval --model vllm \
  --model_args pretrained=/data/models/Llama-3.1-70B-Instruct,tensor_parallel_size=2,dtype=auto,gpu_memory_utilization=0.8,max_model_len=8192,data_parallel_size=1 \
  --tasks gsm8k,ifeval --batch_size auto 2>&1 | tee eval.log
