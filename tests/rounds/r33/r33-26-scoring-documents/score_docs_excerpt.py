# score_docs.py (rest is loading and writing the jsonl)
llm = LLM(model="Qwen/Qwen1.5-1.8B-Chat", max_model_len=4096)     # everything else default
sp = SamplingParams(temperature=0, max_tokens=1,
                    prompt_logprobs=args.prompt_logprobs)           # None when the flag is not given
docs = [cut(d, 2048) for d in load(args.n)]
outs = llm.generate(docs, sp)
