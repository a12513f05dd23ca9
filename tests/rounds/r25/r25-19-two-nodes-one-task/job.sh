#!/bin/bash
#SBATCH --job-name=mixtral
#SBATCH --partition=gpu-a100
#SBATCH --nodes=2
#SBATCH --ntasks=1
#SBATCH --gres=gpu:4
#SBATCH --mem=480G
#SBATCH --time=04:00:00
set -x
module load cuda/12.1 python/3.11
source /lustre/p_llm/envs/vllm062/bin/activate
# 2 nodes x 4 A100-80 = 8 GPUs, 281 GB of weights -> 35 GB per GPU
srun python -m vllm.entrypoints.openai.api_server --model /lustre/p_llm/models/Mixtral-8x22B-Instruct-v0.1 --tensor-parallel-size 8 --max-model-len 16384 --port 8123
