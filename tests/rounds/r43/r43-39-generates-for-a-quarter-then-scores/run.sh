# vllm 0.3.2, transformers 4.38.1, torch 2.1.2+cu121, python 3.11, RTX 6000 Ada 48 GB (card empty before)
lm_eval --model vllm \
  --model_args pretrained=/base/Mistral-7B-v0.1,dtype=auto,gpu_memory_utilization=0.9 \
  --tasks squadv2 --num_fewshot 2 --batch_size auto
