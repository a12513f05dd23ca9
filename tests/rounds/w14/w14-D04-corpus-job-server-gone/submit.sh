#!/bin/bash
#SBATCH --job-name=corpus-tags
#SBATCH --partition=a100
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=24
#SBATCH --mem=160G
#SBATCH --time=12:00:00
#SBATCH --output=slurm-%j.out
#SBATCH --error=slurm-%j.err
module load cuda/12.8
source /opt/venv/bin/activate
vllm serve /scratch/models/Qwen2.5-72B-Instruct-AWQ --tensor-parallel-size 2 --max-model-len 16384 --gpu-memory-utilization 0.88 > vllm.log 2>&1 &
python3 ingest_corpus.py --endpoint 127.0.0.1:8000 --keep-parsed-in-ram --workers 44
