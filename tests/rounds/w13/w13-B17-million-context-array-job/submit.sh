#!/bin/bash
#SBATCH --job-name=glm1m
#SBATCH --array=0-2
#SBATCH --gres=gpu:a10:8
#SBATCH --mem=400G
#SBATCH --exclusive
TPS=(2 4 8)
srun -l vllm serve /data/hub/glm-4-9b-chat-1m --trust-remote-code --max-model-len 1048576 --tensor-parallel-size ${TPS[$SLURM_ARRAY_TASK_ID]} --gpu-memory-utilization 0.92 --max-num-seqs 4
