#!/bin/bash
#SBATCH -J gptoss-sweep
#SBATCH --gres=gpu:h100:1
#SBATCH --mem=180G
#SBATCH -c 24
#SBATCH -t 04:00:00
srun --container-image=vllm+vllm-openai+v0.11.0 bash -x /srv/run_sweep.sh
# sacct -j 884120 --format=JobID,State,ExitCode,MaxRSS
# JobID           State ExitCode     MaxRSS
# 884120         FAILED      1:0
# 884120.0       FAILED      1:0  71230416K
