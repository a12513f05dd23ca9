#!/bin/bash
#SBATCH --job-name=gemma-serve
#SBATCH --partition=gpu-t4
#SBATCH --gres=gpu:t4:1
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
#SBATCH --output=slurm-%j.out
# (no --mem: partition default is 2G per cpu)
echo "Starting on $(hostname -s) at $(date)"
echo "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
source ~/envs/vllm/bin/activate
python -m vllm.entrypoints.openai.api_server --model google/gemma-2-2b-it --dtype half \
    --download-dir /scratch/llm/hub --port 8192
