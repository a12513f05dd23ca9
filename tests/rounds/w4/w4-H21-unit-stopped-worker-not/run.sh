#!/bin/sh
export CUDA_VISIBLE_DEVICES=0
exec vllm serve mistralai/Mistral-7B-Instruct-v0.3 --max-model-len 32768 --tokenizer-mode mistral
