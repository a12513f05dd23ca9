#!/bin/bash
# second try, first two times with --max-model-len 16384
export CUDA_DEVICE_ORDER=PCI_BUS_ID
source ~/vllm/bin/activate
exec vllm serve casperhansen/llama-3.3-70b-instruct-awq --pipeline-parallel-size 2 --max-model-len 4096 --served-model-name llama70 2>&1 | tee -a ~/serve.log
