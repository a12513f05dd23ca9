#!/bin/bash
# pod template: RTX PRO 6000, 96 GB, volume 150 GB at /vol
export HF_HOME=/vol/.cache/hf
vllm serve /vol/models/Devstral-Small-2-24B-Instruct-bf16 \
  --served-model-name devstral --host 0.0.0.0 --api-key "$KEY" \
  --max-model-len 262144 --limit-mm-per-prompt '{"image": 0}' \
  --enable-auto-tool-choice --tool-call-parser mistral 2>&1 | tee /vol/vllm.log
