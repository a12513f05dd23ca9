# two workers of the same model behind one frontend, defaults otherwise
python3 -m dynamo.frontend --http-port 8000 &
CUDA_VISIBLE_DEVICES=0 python3 -m dynamo.trtllm --model-path Qwen/Qwen3-0.6B --served-model-name Qwen/Qwen3-0.6B &
sleep 75
CUDA_VISIBLE_DEVICES=0 python3 -m dynamo.trtllm --model-path Qwen/Qwen3-0.6B --served-model-name Qwen/Qwen3-0.6B &
wait
# odd: half of the requests are fine, a long one that lands on the second worker is a 500
