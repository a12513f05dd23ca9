vllm serve /data/Qwen2-7B-Instruct-GPTQ-Int4 --quantization gptq   # swap-space and the rest as they are by default (4 GiB, 0.9)
