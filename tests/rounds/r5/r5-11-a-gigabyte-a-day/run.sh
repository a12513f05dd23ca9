docker run -d --runtime nvidia --gpus '"device=3,4,5,6"' -e TRANSFORMERS_OFFLINE=1 -p 8000:8000 --ipc=host vllm/vllm-openai:v0.11.0 \
 --model Qwen/Qwen3-VL-235B-A22B-Instruct-FP8 --tensor-parallel-size 4 --gpu-memory-utilization 0.95 --mm-encoder-tp-mode data --limit-mm-per-prompt.video 0 --enable-auto-tool-choice --tool-call-parser hermes
