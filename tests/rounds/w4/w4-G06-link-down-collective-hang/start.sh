#!/bin/bash
export NCCL_DEBUG=WARN HF_HUB_OFFLINE=1
CUDA_VISIBLE_DEVICES=0,1 exec vllm serve /srv/models/mixtral-8x7b --served-model-name mixtral -tp 2
