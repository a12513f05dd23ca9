ray job submit --address=http://127.0.0.1:8265 -- python -m openrlhf.cli.train_ppo_ray \
  --pretrain /share/Llama-3.3-70B-Instruct --remote_rm_url http://10.8.0.30:5000/get_reward --advantage_estimator reinforce \
  --actor_num_nodes 2 --actor_num_gpus_per_node 8 \
  --ref_num_nodes 2 --ref_num_gpus_per_node 8 \
  --colocate_actor_ref \
  --vllm_num_engines 2 --vllm_tensor_parallel_size 4 --vllm_gpu_memory_utilization 0.9 \
  --zero_stage 3 --bf16 --adam_offload --gradient_checkpointing \
  --micro_train_batch_size 1 --prompt_max_len 2048 --generate_max_len 4096
