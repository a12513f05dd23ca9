# node dl-a100-02, eight A100-PCIE-40GB, nobody else books it this week
VLLM_WORKER_MULTIPROC_METHOD=spawn python -m vllm.entrypoints.openai.api_server \
  --dtype auto --port 8009 --trust-remote-code --served-model-name qwen2vl \
  --model /models/Qwen2.5-VL-72B-Instruct --tensor-parallel-size 4 \
  --gpu_memory_utilization 0.95 --max_num_seqs 2 --max_model_len 8192 \
  --mm_processor_kwargs '{"max_pixels":1280,"min_pixels":256}'
