lm_eval --model vllm \
  --model_args pretrained=/data/Meta-Llama-3-8B-Instruct,dtype=bfloat16,gpu_memory_utilization=0.9,max_model_len=8192 \
  --tasks mmlu --num_fewshot 5 --batch_size auto
