docker run --rm --gpus all -p 8000:8000 -e NCCL_DEBUG=WARN \
   -v /data/models/Llama-2-13b-chat-hf:/mnt/m:ro  llm/vllm:0.1.7-cu118 \
   python -m vllm.entrypoints.api_server --model /mnt/m --tensor-parallel-size 4 --host 0.0.0.0

# same image, same box, --tensor-parallel-size 1 and Llama-2-7b-chat-hf: works
