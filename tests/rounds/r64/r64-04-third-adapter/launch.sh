#!/bin/sh
# adapters were serialised with the same tool as the base model, adapter_model.tensors, 642 MB each on disk
exec vllm serve /models/llama-2-7b-hf --port 8000 --load-format tensorizer \
  --model-loader-extra-config '{"tensorizer_uri": "/models/llama-2-7b-hf/model-rank-%03d.tensors"}' \
  --tensor-parallel-size 2 --max-model-len 4096 --max-num-seqs 64 \
  --enable-lora --max-loras 2 --max-lora-rank 64 --max-cpu-loras 8 \
  --lora-modules sql=/adapters/sql legal=/adapters/legal medical=/adapters/medical support=/adapters/support
