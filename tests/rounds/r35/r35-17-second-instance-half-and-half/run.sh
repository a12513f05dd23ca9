#!/bin/bash
# two copies of the same chat model, 50/50, both over both cards (A/B of two prompts templates)
M=h2oai/h2ogpt-4096-llama2-7b-chat
python3 -u -m vllm.entrypoints.openai.api_server --host 0.0.0.0 --port 8000 --served-model-name llama2-chat --model $M --tensor-parallel-size 2 --enforce-eager --gpu-memory-utilization 0.5 > first-8000.log 2>&1 &
sleep 450   # the first one is up and answers; nvidia-smi.txt was taken here
python3 -u -m vllm.entrypoints.openai.api_server --host 0.0.0.0 --port 8888 --served-model-name llama2-chat --model $M --tensor-parallel-size 2 --enforce-eager --gpu-memory-utilization 0.5 > second-8888.log 2>&1 &
# pip list: vllm 0.2.7, ray 2.9.1, torch 2.1.2
