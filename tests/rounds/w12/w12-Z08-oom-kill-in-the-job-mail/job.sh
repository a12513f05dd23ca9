#!/bin/bash
#SBATCH -J q72-eval
#SBATCH --gres=gpu:a100:2
#SBATCH --mem=240G
#SBATCH -c 24
#SBATCH -t 06:00:00
vllm serve /scratch/models/Qwen2.5-72B-Instruct-AWQ --served-model-name q72 --tensor-parallel-size 2 --max-model-len 16384 --max-num-seqs 64 --port 8077 --disable-log-requests &
wait
