#!/bin/bash
set +x
REWARD_MODEL="/data/oss/rlhf/rm-13b"
SFT_MODEL="/data/oss/rlhf/sft-llama2-13b"
DATASET="/data/oss/dataset/full-v3"
ray job submit --address="http://127.0.0.1:8265" \
    --runtime-env-json='{"working_dir": "/workspace/openrlhf"}' -- \
    python3 examples/train_ppo_ray.py \
    --ref_num_nodes 1 --ref_num_gpus_per_node 2 \
    --reward_num_nodes 1 --reward_num_gpus_per_node 2 \
    --critic_num_nodes 1 --critic_num_gpus_per_node 2 \
    --actor_num_nodes 1 --actor_num_gpus_per_node 4 \
    --colocate_critic_reward --colocate_actor_ref \
    --vllm_num_engines 2 --vllm_tensor_parallel_size 1 \
    --pretrain ${SFT_MODEL} --reward_pretrain ${REWARD_MODEL} \
    --save_path /data/oss/rlhf/out \
    --micro_train_batch_size 2 --train_batch_size 128 \
    --micro_rollout_batch_size 4 --rollout_batch_size 1024 \
    --num_episodes 1 --max_epochs 1 --prompt_max_len 1024 --generate_max_len 1024 \
    --zero_stage 3 --bf16 --adam_offload --gradient_checkpointing \
    --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 --init_kl_coef 0.01 \
    --prompt_data ${DATASET} --prompt_data_probs 1.0 --max_samples 80000
