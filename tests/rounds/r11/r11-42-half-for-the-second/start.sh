python -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.2-3B --gpu-memory-utilization 0.35 --max-model-len 4096 --port 8000 > a.log 2>&1 &
sleep 120; nvidia-smi --query-gpu=memory.used,memory.free --format=csv,noheader     # 8632 MiB, 15573 MiB
python -m vllm.entrypoints.openai.api_server --model mistralai/Mistral-7B-Instruct-v0.3 --gpu-memory-utilization 0.50 --max-model-len 4096 --port 8001 > b.log 2>&1 &
