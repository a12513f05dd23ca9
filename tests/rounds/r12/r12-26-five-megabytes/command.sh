python3 -m sglang.launch_server --model-path Eco-Tech/GLM-5.2-w8a8 --attention-backend ascend --device npu --tp-size 16 \
 --chunked-prefill-size 2048 --max-prefill-tokens 20000 --trust-remote-code --mem-fraction-static 0.90 --port 8000 \
 --cuda-graph-bs 16 --quantization modelslim --speculative-algorithm NEXTN --speculative-num-steps 3 \
 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --moe-a2a-backend deepep --deepep-mode auto
