vllm serve /model --port 8000 --trust-remote-code --served-model-name internvl2-internlm2 --enable-chunked-prefill False --gpu-memory-utilization 0.9 --tensor-parallel-size 2
