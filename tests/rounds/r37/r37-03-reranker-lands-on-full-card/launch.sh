#!/bin/bash
# gpu-box-3, 8 x L20. xinference 1.6.1, vllm 0.8.5
xinference launch --model-name qwen3 --model-type LLM --model-engine vLLM --model-format gptq \
  --size-in-billions 32 --quantization Int8 --n-gpu 4 --replica 1 --gpu-idx 4,5,6,7 \
  --model-path /data/models/Qwen3-32B-GPTQ-Int8 --max_model_len 40960 --gpu_memory_utilization 0.95
sleep 240
xinference launch --model-name bge-reranker-v2-m3 --model-type rerank --replica 1 --n-gpu auto \
  --model-path /data/models/bge-reranker-v2-m3
