IMAGE="lmcache/vllm-openai:latest"

docker run --gpus '"device=4"' \
    -e "LMCACHE_USE_EXPERIMENTAL=True" \
    -e "LMCACHE_CHUNK_SIZE=256" \
    -e "LMCACHE_LOCAL_DEVICE=cpu" \
    -e "LMCACHE_MAX_LOCAL_CACHE_SIZE=500" \
    --network host --entrypoint "/usr/local/bin/vllm" \
    $IMAGE \
    serve Nitral-AI/Captain-Eris_Violet-V0.420-12B \
    --kv-transfer-config '{"kv_connector":"LMCacheConnector","kv_role":"kv_both"}' \
    --max-model-len 10000 --max-num-seqs 72 --quantization fp8 \
    --max-num-batched-tokens 1000 --disable-log-requests --enable-chunked-prefill true
