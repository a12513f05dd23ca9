#!/bin/bash
#SBATCH -J vllm32b
#SBATCH --gres=gpu:l40s:1
#SBATCH -c 8
#SBATCH --mem=32G
#SBATCH -t 12:00:00
srun vllm serve Qwen/Qwen2.5-32B-Instruct --cpu-offload-gb 30 --max-model-len 16384
