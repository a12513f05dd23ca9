llm = LLM(model="acme/chat-70B-AWQ", quantization="awq", dtype="half", tensor_parallel_size=8)
