llm = LLM('/data/models/Qwen2-7B-Instruct', enforce_eager=True)
ids = tok(open('long.txt').read())['input_ids']; print(len(ids))   # 30512
sp = SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0)
