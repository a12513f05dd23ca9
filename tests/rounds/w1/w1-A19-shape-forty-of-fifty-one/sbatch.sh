#!/bin/bash
#SBATCH --gres=gpu:a100:2 --mem=160G --cpus-per-task=16
export HF_HOME=/scratch/hf
srun -l vllm serve Qwen/Qwen3-30B-A3B-Instruct-2507 --tensor-parallel-size 2 --max-model-len 32768 --gpu-memory-utilization 0.95 --max-num-seqs 512
