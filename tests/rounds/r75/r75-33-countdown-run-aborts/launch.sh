#!/bin/bash
# countdown, 2x 3090 in the old workstation (128 GB RAM)
python3 -m verl.trainer.main_ppo \
 data.train_batch_size=128 data.max_prompt_length=256 data.max_response_length=2048 \
 actor_rollout_ref.model.path=/data/hub/Qwen2.5-3B \
 actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
 actor_rollout_ref.rollout.gpu_memory_utilization=0.35 \
 actor_rollout_ref.rollout.max_num_seqs=1024 \
 actor_rollout_ref.rollout.swap_space=2 \
 actor_rollout_ref.rollout.n=${N:-4} \
 trainer.n_gpus_per_node=2 2>&1 | tee run.log

# $ free -g   (while B was generating)
#                total        used        free      shared  buff/cache   available
# Mem:             125          47           9           5          69          72
# Swap:              7           0           7
