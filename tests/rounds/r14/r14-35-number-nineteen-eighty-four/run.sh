export ASCEND_RT_VISIBLE_DEVICES=0,1,2,3
vllm serve /mnt/share_space/Qwen3.5-9B --port 8000 --tensor-parallel-size 4 --max-model-len 262144 --reasoning-parser qwen3 --speculative-config '{"method":"qwen3_next_mtp","num_speculative_tokens":2}'
