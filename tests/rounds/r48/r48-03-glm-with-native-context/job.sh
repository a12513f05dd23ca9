#!/bin/bash
#SBATCH --job-name=glm53
#SBATCH --nodes=1 --gpus-per-node=8 --exclusive
#SBATCH --constraint=h200
# card of the recipe page for the 5.2 model, only the name exchanged
# (that page is for 8x H200 too; it had a --max-model-len line that I took out because
#  "native context" is what the team asked for)
srun --container-image=vllm/vllm-openai:v0.28.0 \
  vllm serve zai-org/GLM-5.3-FP8 \
    --served-model-name glm-5.3 \
    --tensor-parallel-size 8 \
    --kv-cache-dtype fp8 \
    --tool-call-parser glm47 --reasoning-parser glm45 --enable-auto-tool-choice
