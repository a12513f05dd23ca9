# frontend (one pod, 512 GiB node, no memory limit)
DYN_ROUTER_MODE=kv python -m dynamo.frontend --http-port 8000
# 8 times
python -m dynamo.sglang --model-path Qwen/Qwen3-0.6B --page-size 16
# load: constant 10 requests/s, mean input 20,000 tokens (most of it repeated), mean output 300; stopped at minute 300
