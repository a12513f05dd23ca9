#!/bin/bash
# start_worker.sh  (rig-3090, one RTX 3090, driver 550.90.07)
source /opt/fastchat/venv/bin/activate
python3 -m fastchat.serve.vllm_worker \
  --model-path /models/Meta-Llama-3.1-8B-Instruct \
  --model-names llama-3.1-8b-instruct \
  --controller-address http://127.0.0.1:21001 --worker-address http://127.0.0.1:21002 --port 21002 \
  --dtype bfloat16 --limit-worker-concurrency 64 2>&1 | tee /var/log/fastchat/vllm_worker.log
