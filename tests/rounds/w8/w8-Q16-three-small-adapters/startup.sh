# Container-Optimized OS startup (instance metadata, g2-standard-8)
docker run -d --name llm --gpus all --ipc=host -p 8000:8000 -v /mnt/disks/models:/mnt/models -v /mnt/disks/adapters:/mnt/adapters \
  vllm/vllm-openai:v0.18.1 /mnt/models/Llama-3.1-8B-Instruct --max-model-len 16384 --max-num-seqs 64 \
  --enable-lora --max-loras 16 --max-lora-rank 64 --lora-modules faktura=/mnt/adapters/faktura umowy=/mnt/adapters/umowy hr-faq=/mnt/adapters/hr-faq
# poprzednio (do 14.04): bez czterech opcji --enable-lora ... --lora-modules
