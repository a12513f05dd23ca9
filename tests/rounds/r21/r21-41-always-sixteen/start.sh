python -m vllm.entrypoints.api_server --model meta-llama/Llama-2-13b-chat-hf --max-num-seqs 16 --disable-log-requests
