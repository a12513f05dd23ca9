#!/bin/bash
# bare metal, 2 cards, no container
export LMCACHE_CONFIG_FILE=/opt/llm/lmcache.yaml
export LMCACHE_USE_EXPERIMENTAL=True
vllm serve /opt/llm/models/Qwen2.5-32B-Instruct \
  --tensor-parallel-size 2 --max-model-len 32768 --gpu-memory-utilization 0.9 \
  --kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'

# ---- /opt/llm/lmcache.yaml
# chunk_size: 256
# local_cpu: True
# max_local_cpu_size: 100
