# run.sh on px-2
export VLLM_ATTENTION_BACKEND=FLASH_ATTN
# export PYTORCH_ALLOC_CONF=...        (was needed for the old sleep-mode trial, commented out 2026-04-11, vh)
python tools/memhook.py --on-exit /var/tmp/mem --daily /var/tmp/mem/daily.csv -- \
 vllm serve /m/Qwen2.5-VL-7B-Instruct --served-model-name reader --gpu-memory-utilization 0.9 --max-model-len 32768 --limit-mm-per-prompt '{"image": 6}'
