python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=/data/geo3k/train.parquet \
    data.val_files="['/data/geo3k/test.parquet','/data/docvqa_pages/val.parquet']" \
    data.train_batch_size=256 data.val_batch_size=null \
    data.max_prompt_length=4096 data.max_response_length=2048 \
    data.image_key=images \
    actor_rollout_ref.model.path=/data/models/Qwen2.5-VL-7B-Instruct \
    actor_rollout_ref.actor.fsdp_config.param_offload=False \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
    actor_rollout_ref.rollout.name=sglang \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    actor_rollout_ref.rollout.n=8 \
    trainer.n_gpus_per_node=4 trainer.nnodes=1 \
    trainer.test_freq=10 trainer.save_freq=50 trainer.total_epochs=4
# 09-14: docvqa_pages added to val_files after step 10 had gone through (resume from step 10), 5,349 pages of 2480x3508
