#!/bin/sh
# inside the devbox pod
exec python3 -m vllm.entrypoints.openai.api_server --model /nas/Qwen2.5-14B-Instruct --served-model-name q14 --max-model-len 32768 --disable-log-requests >> /var/log/q14.log 2>&1
