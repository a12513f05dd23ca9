export DYN_KVBM_CPU_CACHE_GB=100
vllm serve /models/qwen3 -tp 2 --port 8000 --kv-transfer-config '{"kv_connector":"DynamoConnector","kv_role":"kv_both","kv_connector_module_path":"dynamo.llm.vllm_integration.connector"}'
