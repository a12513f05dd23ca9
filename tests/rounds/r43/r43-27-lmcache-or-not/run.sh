#!/bin/bash
# g5.4xlarge, A10G, 64 GB RAM. vllm/vllm-openai:v0.11.0 plain, lmcache/vllm-openai for run C
VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192 --gpu-memory-utilization 0.9 --max-num-seqs 32 $KV   # KV only in run C:
# KV="--kv-transfer-config {\"kv_connector\":\"LMCacheConnectorV1\",\"kv_role\":\"kv_both\"}"   LMCACHE_LOCAL_CPU=True LMCACHE_MAX_LOCAL_CPU_SIZE=24 LMCACHE_CHUNK_SIZE=256

# N handbooks of 6,000 tokens each, asked in turn (1,2,..,N,1,2,..) with a question of 40 tokens behind; answers of 128; 0.35 req/s poisson
python turns.py --base-url http://127.0.0.1:8000 --handbooks $N --rate 0.35 --requests 240
