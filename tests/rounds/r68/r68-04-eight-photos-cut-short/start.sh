#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 swift deploy \
    --model_type qwen2-vl-72b-instruct \
    --model_id_or_path /mnt/ckpt/Qwen2-VL-72B-Instruct \
    --infer_backend vllm \
    --limit_mm_per_prompt '{"image": 8}' \
    --tensor_parallel_size 8 \
    --max_model_len 32768 \
    --enforce_eager True \
    --port 9701 --host 0.0.0.0
