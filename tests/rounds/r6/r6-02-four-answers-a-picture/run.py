llm = LLM("OS-Copilot/OS-Atlas-Base-7B", max_model_len=8192, gpu_memory_utilization=0.9, disable_mm_preprocessor_cache=True)
for batch in batches(images, 100):
    out = llm.generate(batch, SamplingParams(n=4, temperature=1.0, max_tokens=256))   # n=1: fine
    write(out)
