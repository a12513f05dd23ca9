vllm serve Qwen/Qwen2.5-Omni-7B --port 8901 --limit-mm-per-prompt audio=1   # A100 80GB, host 125 GiB
# batch 1: 4000 wav files, 8 at a time; ten minutes of nothing; batch 2: other 4000
