MAX_PIXELS=602112 \
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
NPROC_PER_NODE=8 \
swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen2.5-VL-7B-Instruct \
    --external_plugins plugin.py \
    --reward_funcs external_r1v_acc format \
    --use_vllm true \
    --vllm_gpu_memory_utilization 0.5 \
    --tensor_parallel_size 4 \
    --train_type lora --torch_dtype bfloat16 \
    --dataset 'lmms-lab/multimodal-open-r1-8k-verified#1000' \
    --max_completion_length 2048 \
    --num_train_epochs 3 \
    --per_device_train_batch_size 1 \
    --num_generations 4 \
    --temperature 1.0 --top_p 0.9
