for echo in (False, True):
    for text in texts[:400]:            # ~300 tokens each
        r = await client.completions.create(model="Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", prompt=text,
                max_tokens=1, echo=echo, logprobs=1 if echo else None, temperature=0)
