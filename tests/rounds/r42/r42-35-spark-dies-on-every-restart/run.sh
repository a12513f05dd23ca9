docker run -d --restart unless-stopped --name sg-mistral --gpus all --shm-size 16g \
  -v /data/models:/data/models lmsysorg/sglang:spark \
  python3 -m sglang.launch_server --model-path /data/models/mistral-small-4 --port 30000 --mem-fraction-static 0.72 --context-length 65536
