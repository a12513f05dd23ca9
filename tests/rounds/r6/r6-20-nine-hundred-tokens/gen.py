llm = LLM('BAAI/AquilaChat2-34B', tensor_parallel_size=2, trust_remote_code=True)
out = llm.generate(prompt_token_ids=[ids], sampling_params=SamplingParams(max_tokens=1, prompt_logprobs=1))
