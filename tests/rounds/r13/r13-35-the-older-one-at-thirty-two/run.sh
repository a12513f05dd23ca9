docker run -d --gpus all --ipc=host vllm/vllm-openai:v0.11.0 --model TheBloke/Llama-2-7B-Chat-GPTQ --max-model-len 4096 --gpu-memory-utilization 0.9 --max-num-seqs 96 --enable-prefix-caching
