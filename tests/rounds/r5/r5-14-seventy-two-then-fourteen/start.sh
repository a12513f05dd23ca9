# a
python3 -m vllm.entrypoints.openai.api_server --model /models/Qwen2.5-72B-Instruct-GPTQ-Int4 --gpu-memory-utilization 0.75 --max-model-len=16384 --quantization=gptq --enforce-eager --enable-chunked-prefill --enable-prefix-caching --port 8000 &
# b, when a answers
python3 -m vllm.entrypoints.openai.api_server --model /models/Qwen2.5-14B-Instruct-GPTQ-Int4 --gpu-memory-utilization 0.20 --max-model-len=16384 --quantization=gptq --enforce-eager --enable-chunked-prefill --enable-prefix-caching --port 8001
