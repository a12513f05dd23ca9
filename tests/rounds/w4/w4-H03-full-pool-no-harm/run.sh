#!/bin/sh
# pod command, research/qwen32-eval-0, CUDA devices 2,3 by the device plugin
exec vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --reasoning-parser qwen3
