set -x
python3 -m recipe.vista.main_ppo \
  algorithm.adv_estimator=grpo data.train_batch_size=64 data.max_prompt_length=6144 data.max_response_length=4096 \
  actor_rollout_ref.model.path=/models/Qwen2.5-VL-7B-Instruct actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.55 actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.actor.fsdp_config.param_offload=False trainer.n_gpus_per_node=8 trainer.nnodes=1
# vllm 0.11.0 / torch 2.8.0 / driver 570.124.06, node is ours alone (slurm --exclusive)
# renderer for the reward runs inside the workers (recipe/vista/render.py), device arg left at its default
