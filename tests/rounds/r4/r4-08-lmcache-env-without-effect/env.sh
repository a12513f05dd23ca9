export LM_CACHE_CHUNK_SIZE=256
export LM_CACHE_LOCAL_DEVICE="cpu"
export LM_CACHE_MAX_LOCAL_CACHE_SIZE=500
export LM_CACHE_USE_EXPERIMENTAL=True
python3 -m vllm.entrypoints.openai.api_server --model /models/Meta-Llama-3-8B/ --kv-transfer-config '{"kv_connector":"LMCacheConnector", "kv_role":"kv_both"}' --max-model-len 2048 --gpu-memory-utilization 0.75
