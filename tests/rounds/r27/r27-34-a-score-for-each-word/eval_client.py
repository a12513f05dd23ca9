# perplexity of our glossary pages, one page per call
for page in pages:            # 300 ... 4000 tokens
    r = httpx.post(URL + "/v1/completions", json={
        "model": "/models/Qwen3-32B-AWQ", "prompt": page, "max_tokens": 1,
        "temperature": 0, "seed": 1234, "prompt_logprobs": 1}, timeout=120)
    r.raise_for_status()
# first 61 pages (all under 1900 tokens) fine, page 62 -> 500 and everybody's chat is gone
