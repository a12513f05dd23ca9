#!/bin/bash -l
#SBATCH -A p200981
#SBATCH -q default
#SBATCH -p gpu
#SBATCH -t 02:00:00
#SBATCH -N 4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-task=4
#SBATCH -c 64
#SBATCH --error="vllm-%j.err"
#SBATCH --output="vllm-%j.out"

module load Apptainer/1.3.6-GCCcore-13.3.0
export SIF_IMAGE=vllm-openai_v0.6.6.sif
export HF_HOME=/project/scratch/p200981/HF
export HF_MODEL="meta-llama/Llama-3.1-405B-Instruct-FP8"
export HEAD_HOSTNAME="$(hostname)"
export HEAD_IPADDRESS="$(hostname --ip-address)"
export TENSOR_PARALLEL_SIZE=4
export PIPELINE_PARALLEL_SIZE=${SLURM_NNODES}
export RAY_PORT=$(shuf -i 30000-40000 -n 1)

srun -J head -N1 -n1 -w ${HEAD_HOSTNAME} apptainer exec --nvccli ${SIF_IMAGE} ray start --block --head --port=${RAY_PORT} &
sleep 10
srun -J workers -N $((SLURM_NNODES-1)) -n $((SLURM_NNODES-1)) -x ${HEAD_HOSTNAME} apptainer exec --nvccli ${SIF_IMAGE} ray start --block --address=${HEAD_IPADDRESS}:${RAY_PORT} &
sleep 30
apptainer exec --nvccli ${SIF_IMAGE} vllm serve ${HF_MODEL} --tensor-parallel-size ${TENSOR_PARALLEL_SIZE} --pipeline-parallel-size ${PIPELINE_PARALLEL_SIZE} --distributed-executor-backend ray
