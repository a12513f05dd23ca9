#!/bin/bash
#SBATCH -N 2 --gpus-per-node=8 --exclusive --mem=0 -t 08:00:00 -J mlarge
export NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/project/logs/nccl.%h.%p
. /project/envs/vllm/bin/activate
./start_ray.sh   # head on first node, worker on second
srun -N1 -n1 -w $HEAD --overlap vllm serve /project/models/Mistral-Large-Instruct-2407 \
  -tp 8 -pp 2 --distributed-executor-backend ray --max-model-len 32768
