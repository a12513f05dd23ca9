docker run -d --name vllm-tts --runtime nvidia --gpus all --ipc=host -p 8091:8091 vllm/vllm-omni:v0.18.0 \
  vllm serve Qwen/Qwen3-TTS-12Hz-0.6B-Base --omni --port 8091     # started Mon Mar 30 08:11:30, removed 09:02
