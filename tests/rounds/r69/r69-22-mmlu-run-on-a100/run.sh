#!/bin/bash
# lm_eval 0.4.5, vllm 0.6.0, torch 2.4.0
lm_eval --model vllm \
  --model_args pretrained=/models/Meta-Llama-3-8B-Instruct,dtype=bfloat16,max_model_len=8192 \
  --tasks mmlu --num_fewshot 5 --batch_size auto
