#!/usr/bin/env bash
# wheel for the b200 nodes and (new) the rtx pro box
set -e
export CUDA_HOME=/usr/local/cuda-13.0
export TORCH_CUDA_ARCH_LIST="9.0a 10.0a 12.0+PTX"
export MAX_JOBS=24
cd vllm && git checkout v0.12.0
python use_existing_torch.py
pip wheel --no-build-isolation --no-deps -w dist .
