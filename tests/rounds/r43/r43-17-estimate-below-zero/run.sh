#!/bin/bash
# node gfx-07, 8x MI325X, nothing else on it. nightly of 13 August
docker run --rm --device /dev/kfd --device /dev/dri --ipc host --shm-size 64g -v /data/models:/models:ro \
  registry.example/vllm-rocm:nightly-3ee2df303 \
  vllm serve /models/GLM-5.2-FP8 --tensor-parallel-size 8 --max-model-len 131072 \
    --max-num-batched-tokens 4096 --max-num-seqs 64 --gpu-memory-utilization ${UTIL:-0.88} \
    --speculative-config '{"method":"mtp","num_speculative_tokens":1}' $EXTRA
