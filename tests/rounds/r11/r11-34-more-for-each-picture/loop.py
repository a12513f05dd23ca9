llm = LLM(model="microsoft/Phi-3.5-vision-instruct", trust_remote_code=True, max_model_len=8192, limit_mm_per_prompt={"image": 1}, mm_processor_kwargs={"num_crops": 16})
for i, url in enumerate(urls):                 # one picture a call, nothing is kept
    out = llm.chat(messages(url), SamplingParams(max_tokens=64), use_tqdm=False)
    f.write(out[0].outputs[0].text + "\n")
    if i % 50 == 0: print(i, rss())
