#!/bin/bash
# tmux: llm   (a6000 工作站)
source ~/envs/vllm066/bin/activate
export CUDA_VISIBLE_DEVICES=0
python -m vllm.entrypoints.openai.api_server --host 0.0.0.0 --port 8000 \
  --model /data/models/Llama-3.3-70B-Instruct-AWQ --served-model-name llama70b \
  --quantization awq_marlin --max-model-len 8192 --max-num-seqs 32 \
  --gpu-memory-utilization 0.92 --disable-log-requests \
  --speculative-model /data/models/Llama-3.2-3B-Instruct --num-speculative-tokens 5 \
  2>&1 | tee ~/logs/vllm_$(date +%m%d).log
