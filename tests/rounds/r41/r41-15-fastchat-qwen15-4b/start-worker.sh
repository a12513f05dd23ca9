#!/bin/sh
# worker for the demo page, one card, chat only
export CUDA_VISIBLE_DEVICES=0
python3 -m fastchat.serve.vllm_worker \
    --model-path /srv/models/qwen1.5-4b-chat \
    --controller http://fc-controller:21001 \
    --worker-address http://fc-worker-3:21007 --host 0.0.0.0 --port 21007 \
    --model-names qwen1.5-4b-chat --trust-remote-code --dtype bfloat16 --enforce-eager
