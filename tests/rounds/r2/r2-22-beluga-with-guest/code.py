llm = LLM(model="stabilityai/StableBeluga2", tensor_parallel_size=2)
