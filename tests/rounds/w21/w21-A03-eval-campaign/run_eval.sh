#!/bin/bash
set -euo pipefail
export VLLM_CACHE_ROOT=/scratch/$USER/vllm-cache HF_HUB_OFFLINE=1
vllm serve /scratch/models/gpt-oss-120b --served-model-name gpt-oss-120b --host 127.0.0.1 -tp 2 --max-num-seqs 128 &
SRV=$!
until curl -sf http://127.0.0.1:8000/health; do sleep 5; done
python -m eval_runner --suite gpqa-long,aime,internal-de --workers 96 --base http://127.0.0.1:8000/v1 --max-tokens 16384
kill -TERM $SRV; wait $SRV || true
