python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.4 trainer.n_gpus_per_node=8 trainer.nnodes=1
# instance: 8x A800 80G, 96 GB
# later: same script on an instance with 1 TB, step 210 by now
