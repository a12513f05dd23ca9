#!/bin/bash
#SBATCH --job-name=korpus-llm --gres=gpu:4 --mem=48G --cpus-per-task=16 --time=2-0
module load vllm/0.20.2
srun vllm serve /models/Mixtral-8x7B-Instruct-v0.1 --tensor-parallel-size 4 --max-model-len 8192 --max-num-seqs 16 --cpu-offload-gb 10
