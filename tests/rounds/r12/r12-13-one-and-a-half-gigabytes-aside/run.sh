python -m vllm.entrypoints.openai.api_server --enforce-eager --no-enable-prefix-caching --model /data/model/llama3 --gpu-memory-utilization 0.9 --speculative-model /data/model/eagle-llama3 --num-speculative-tokens 3 --speculative-disable-by-batch-size 10 --max-model-len 10000
python benchmarks/benchmark_serving.py --backend vllm --model /data/model/llama3 --dataset-name sharegpt --num-prompts 100
