docker run -d --gpus all -p 8000:8000 -v /data/models:/models vllm/vllm-openai:v0.8.3 --model /models/MiniMax-Text-01 --quantization experts_int8 --tensor-parallel-size 8 --trust-remote-code
