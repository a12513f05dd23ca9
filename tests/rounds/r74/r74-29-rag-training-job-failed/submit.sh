# submit.sh  (one node, 8x H800 80GB, 96 cores, 503 GB RAM)
ray job submit --address http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray \
  --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
  --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --vllm_enable_sleep \
  --vllm_gpu_memory_utilization 0.6 --colocate_all_models \
  --pretrain /models/Qwen2.5-14B-Instruct \
  --zero_stage 3 --adam_offload --bf16 \
  --prompt_max_len 3072 --generate_max_len 1024 --rollout_batch_size 128 --n_samples_per_prompt 4 \
  --save_steps 21 --ckpt_path /data/ck/rag14b --max_ckpt_num 2 \
  --remote_rm_url http://127.0.0.1:8101/get_reward
# pip: vllm 0.8.5  ray 2.43.0  torch 2.6.0+cu124  deepspeed 0.16.5
# the retriever (flat index) runs on the same box, started by systemd
