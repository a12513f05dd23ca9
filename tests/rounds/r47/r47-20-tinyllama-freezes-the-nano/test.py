from vllm import LLM, SamplingParams

llm = LLM(model="/data/tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf",
          tokenizer="TinyLlama/TinyLlama-1.1B-Chat-v1.0",
          gpu_memory_utilization=0.5)          # 0.3 and 0.8 tried as well: the same
print(llm.generate(["Tell me about the moon."], SamplingParams(max_tokens=64))[0].outputs[0].text)
