#!/bin/bash
# head, ray-a (10.20.4.11): 4x A100-SXM4-80GB, 192 GB RAM
ray start --head --port=6379 --num-gpus=4 --object-store-memory=48318382080 --disable-usage-stats
# memory monitor left at its defaults (threshold 0.95, refresh 250 ms)
export VLLM_USE_V1=0   # swap space is used for the batch queue
# ray-b joins with --address=10.20.4.11:6379, no GPUs
