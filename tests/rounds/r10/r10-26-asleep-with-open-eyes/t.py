llm = LLM(model="meta-llama/Llama-3.1-8B-Instruct", enable_sleep_mode=True)   # print memory_allocated after inference, after sleep, after wake
