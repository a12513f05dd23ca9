#!/usr/bin/env bash
# single-node agentic benchmark, MiniMax-M2.5 fp8, MI355X   (excerpt; called by the sweep runner)
# runner exports: MODEL TP=4 CONC=64 OFFLOADING=cpu TOTAL_CPU_DRAM_GB=1200 PORT=8888
set -euo pipefail
export VLLM_USE_SIMPLE_KV_OFFLOAD=1
OFFLOAD_ARGS=""
case "${OFFLOADING:-none}" in
  none) ;;
  cpu)
    TOTAL_CPU_DRAM_GB=2000
    OFFLOAD_ARGS="--kv_offloading_backend native --kv_offloading_size $TOTAL_CPU_DRAM_GB --disable-hybrid-kv-cache-manager"
    ;;
esac
vllm serve "$MODEL" --port "$PORT" --tensor-parallel-size "$TP" --gpu-memory-utilization 0.95 \
  --max-model-len 196608 --max-num-seqs "$CONC" --trust-remote-code $OFFLOAD_ARGS > "$SERVER_LOG" 2>&1 &
