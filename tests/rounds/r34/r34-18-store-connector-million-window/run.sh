#!/usr/bin/env bash
# head; the second box runs the same with --node-rank 1 --headless
export MOONCAKE_CONFIG_PATH=/etc/mooncake/store.json VLLM_HOST_IP=10.40.6.21
exec vllm serve /nvme/DeepSeek-V4-Pro --served-model-name ds-v4-pro --port 8100 --host 0.0.0.0 \
  --tokenizer-mode deepseek_v4 --trust-remote-code \
  --tensor-parallel-size 8 --pipeline-parallel-size 2 --nnodes 2 --node-rank 0 --master-addr 10.40.6.21 \
  --enable-expert-parallel --block-size 256 --kv-cache-dtype fp8 --gpu-memory-utilization 0.9 \
  --max-model-len 1000000 --max-num-seqs 64 --max-num-batched-tokens 8192 \
  ${KV_STORE:+--kv-transfer-config '{"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}'}
