screen -L -dmS vllm vllm serve microsoft/Phi-4-mini-instruct --max-model-len 32768 --served-model-name dept --enable-log-requests
