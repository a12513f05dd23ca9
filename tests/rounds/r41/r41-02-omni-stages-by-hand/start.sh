#!/usr/bin/env bash
# one terminal each; three cards in the box, one stage per card is the idea
MODEL=Qwen/Qwen3-Omni-30B-A3B-Instruct
# terminal 1
vllm serve $MODEL --omni --stage-id 0 --port 8091 --max-num-seqs 8 --omni-master-address 127.0.0.1 --omni-master-port 26000
# terminal 2
vllm serve $MODEL --omni --stage-id 1 --headless --max-num-seqs 4 --omni-master-address 127.0.0.1 --omni-master-port 26000
# terminal 3
vllm serve $MODEL --omni --stage-id 2 --headless --max-num-seqs 4 --omni-master-address 127.0.0.1 --omni-master-port 26000
