#!/bin/bash
# reranker gets the rest of the card (port 8002, same unit next week)
vllm serve CohereForAI/c4ai-command-r-08-2024 --max-model-len 32768 --gpu-memory-utilization 0.65 --port 8001 >> command-r.out 2>&1
