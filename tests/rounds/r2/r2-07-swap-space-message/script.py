llm = LLM(model='ehartford/dolphin-llama2-7b', dtype='bfloat16')
params = SamplingParams(n=50, max_tokens=600, temperature=0.2, top_p=0.95)
out = llm.generate(prompts, params)   # 200 prompts
