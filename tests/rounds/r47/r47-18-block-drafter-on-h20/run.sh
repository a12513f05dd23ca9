#!/usr/bin/env bash
# with the last three lines removed (no drafter) the same card serves since May
exec docker run --rm --gpus '"device=3"' --ipc host -p 8010:8010 \
  -v /data/models:/models:ro -v /data/vllm-cache:/cache/vllm registry.lab.example/vllm:0.20.1 \
  /models/Qwen3.5-35B-A3B --served-model-name q35 --port 8010 --trust-remote-code \
  --max-model-len 183872 --max-num-seqs 16 --max-num-batched-tokens 32768 \
  --moe-backend triton --safetensors-load-strategy=prefetch \
  --attention-backend flash_attn \
  --speculative-config '{"method": "dflash", "model": "/models/Qwen3.5-35B-A3B-DFlash",
                         "num_speculative_tokens": 8}'
