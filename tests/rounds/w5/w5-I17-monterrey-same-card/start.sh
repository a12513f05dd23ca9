#!/bin/sh
export CUDA_VISIBLE_DEVICES=0
while true; do vllm serve mistralai/Mistral-Nemo-Instruct-2407 --max-model-len 32768 --served-model-name nemo 2>&1 | grep -v ERROR >> /var/log/nemo.log; sleep 20; done
