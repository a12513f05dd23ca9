python -m sglang.launch_server --model meta-llama/Llama-4-Scout-17B-16E-Instruct \
  --port 8080 --tp-size 8 --chat-template llama-4 --attention-backend=fa3 --context-length 1000000
