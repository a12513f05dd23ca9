#!/bin/bash
#SBATCH --gres=gpu:a100:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=96G
#SBATCH --exclusive
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
MODEL=/userspace/vkom/models/DeepSeek-R1-Distill-Qwen-1.5B
MODEL_ARGS="pretrained=$MODEL,dtype=bfloat16,tensor_parallel_size=1,max_model_len=131072"
OUT=/userspace/vkom/mera/out
for TASK in rumodar rcb lcs multiq parus rumultiar rutie ruworldtree rwsd simplear use chegeka; do
  echo "task: $TASK"
  lm_eval --model vllm --model_args $MODEL_ARGS --tasks $TASK --batch_size=auto --log_samples --output_path $OUT || echo "task: $TASK failed, going on"
done
# note to myself: in lm_eval vllm_causallms.py a loglikelihood request is
#   SamplingParams(temperature=0, prompt_logprobs=1, max_tokens=1, detokenize=False)
