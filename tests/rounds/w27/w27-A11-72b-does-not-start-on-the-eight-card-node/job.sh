#!/bin/bash
#SBATCH --job-name=qwen72b
#SBATCH --partition=a100-40
#SBATCH --nodes=1 --ntasks=1
#SBATCH --gres=gpu:8
#SBATCH --mem=0 --exclusive
#SBATCH --time=12:00:00
# from the colleagues' H200 recipe (2 x 141 GB), util raised a bit
source ~/venvs/vllm12/bin/activate
( while sleep 5; do echo "=== $(date '+%F %T') ==="; nvidia-smi --query-gpu=index,utilization.gpu,utilization.memory,memory.used,memory.total --format=csv,noheader; done ) > smi-$SLURM_JOB_ID.log &
srun vllm serve /gpfs/models/Qwen2.5-72B-Instruct --served-model-name qwen72b \
   --tensor-parallel-size 2 --max-model-len 16384 --gpu-memory-utilization 0.92 --port 8000
