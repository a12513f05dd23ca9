#!/bin/bash
#SBATCH --gres=gpu:8 --mem=900G --time=04:00:00
# config of last week (13B) with the model name changed, nothing else
flexeval_lm \
  --language_model VLLM \
  --language_model.model "/data/hub/Llama-3-Swallow-70B-Instruct-v0.1" \
  --language_model.model_kwargs '{"dtype": "bfloat16", "max_model_len": 4096}' \
  --eval_setup "jmmlu" --save_dir out/swallow70
