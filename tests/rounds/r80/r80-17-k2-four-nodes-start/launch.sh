#!/bin/bash
# node rank from the LWS env
export SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=256 SGLANG_PATCH_TOKENIZER=1 PYTHONUNBUFFERED=1
python -m sglang.launch_server --model-path /mnt/ckpt/Kimi-K2-Thinking_fp8 \
  --tp-size 32 --dp-size 32 --ep-size 32 --nnodes 4 --node-rank $LWS_WORKER_INDEX --dist-init-addr $LWS_LEADER_ADDRESS:20000 \
  --trust-remote-code --enable-dp-attention --enable-dp-lm-head --moe-a2a-backend deepep --moe-dense-tp-size 1 \
  --moe-runner-backend deep_gemm --enable-metrics --log-level info --page-size 64 \
  --mem-fraction-static ${MFS:-0.85} --chunked-prefill-size 262144 --cuda-graph-max-bs ${MAXBS:-128}
