docker run --rm --gpus '"device=0"' --shm-size=16g -e NIM_MODEL_PROFILE=vllm-bf16-tp1-pp1 -p 8000:8000 nim/llama-3.3-70b-instruct:1.13
