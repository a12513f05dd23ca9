python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' \
  algorithm.adv_estimator=grpo data.max_prompt_length=4096 data.max_response_length=8192 data.train_batch_size=128 \
  actor_rollout_ref.model.path=/mnt/models/Qwen3-VL-235B-A22B-Instruct \
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=8 actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.8 actor_rollout_ref.rollout.max_model_len=12288 \
  actor_rollout_ref.actor.megatron.param_offload=True actor_rollout_ref.actor.megatron.optimizer_offload=True actor_rollout_ref.actor.megatron.grad_offload=True \
  trainer.nnodes=2 trainer.n_gpus_per_node=8 $@
