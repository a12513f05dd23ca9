export LMCACHE_CONFIG_FILE=/srv/llm/lmcache.yaml
export LMCACHE_USE_EXPERIMENTAL=True VLLM_USE_V1=1 VLLM_WORKER_MULTIPROC_METHOD=spawn
vllm serve /srv/models/qwen25-72b --served-model-name qwen72 --port 8100 --max-model-len 20000 \
  --gpu-memory-utilization 0.9 --tensor-parallel-size 4 \
  --kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'
