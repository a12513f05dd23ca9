#!/usr/bin/env bash
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_VISIBLE_DEVICES=0,1,2,3   # 4 = display
export NCCL_P2P_DISABLE=1
vllm serve /mnt/nvme/Qwen2.5-32B-Instruct --served-model-name qwen32 -tp 4 --max-model-len 32768 --host 0.0.0.0 --disable-custom-all-reduce
