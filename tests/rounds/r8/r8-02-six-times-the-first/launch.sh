python -m sglang.launch_server --model-path /models/GLM-5.2 --disaggregation-mode prefill --pp-size 2 --tp-size 8 \
  --nnodes 2 --node-rank $RANK --enable-hierarchical-cache --hicache-ratio 2 --hicache-write-policy write_through \
  --mem-fraction-static 0.85 --chunked-prefill-size 16384 --host 0.0.0.0 --port 30000
