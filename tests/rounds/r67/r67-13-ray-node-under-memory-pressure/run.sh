ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray \
   --pretrain /share/models/Qwen2.5-32B-Instruct --reward_pretrain /share/models/rm-32b \
   --ref_num_nodes 2 --ref_num_gpus_per_node 8 --actor_num_nodes 2 --actor_num_gpus_per_node 8 \
   --critic_num_nodes 2 --critic_num_gpus_per_node 8 --reward_num_nodes 2 --reward_num_gpus_per_node 8 \
   --vllm_num_engines 4 --vllm_tensor_parallel_size 4 --vllm_gpu_memory_utilization 0.8 \
   --vllm_enable_sleep --colocate_all_models --adam_offload --ref_reward_offload \
   --micro_rollout_batch_size 8 --rollout_batch_size 1024 --prompt_max_len 2048 --generate_max_len 6144 \
   --zero_stage 3 --bf16
