VLLM_LOGGING_LEVEL=DEBUG VLLM_TRACE_FUNCTION=1 venv/bin/python -m vllm.entrypoints.openai.api_server \
  --model /opt/xi/models/deepseek-coder-33b-instruct --served-model-name deepseek-coder-33b-instruct \
  --tensor-parallel-size 4 --max-model-len 4096 --gpu-memory-utilization 0.9 --dtype float16 --enforce-eager
$ ls -l /tmp/vllm/vllm-instance-7a01/ | head -3
-rw-r--r-- 1 root root 61204410368 Jul 11 10:33 VLLM_TRACE_FUNCTION_for_process_412_thread_139990.log
