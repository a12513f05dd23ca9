#!/bin/sh
# taken over from the try-out on the laptop (8 GB card)
exec python3 -m vllm.entrypoints.openai.api_server --model /models/Llama-3.1-8B-Instruct --served-model-name l31 --max-model-len 16384 --max-num-seqs 8 --disable-log-requests --host 0.0.0.0
