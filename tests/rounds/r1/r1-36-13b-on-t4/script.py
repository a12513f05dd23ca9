llm = LLM(model="meta-llama/Llama-2-13b-hf", tokenizer="hf-internal-testing/llama-tokenizer")
