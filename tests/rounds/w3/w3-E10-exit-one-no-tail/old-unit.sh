# until last week on the same card, 0.10.x; fine for months
docker run --gpus all vllm/vllm-openai:v0.10.1 --model Qwen/Qwen3-4B --max-model-len 32768 --port 8000
