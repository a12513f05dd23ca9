from vllm import LLM, SamplingParams

llm = LLM(model="/data/Qwen2-7B-Instruct.Q4_K_M.gguf", max_model_len=200, max_num_seqs=1)
print(llm.generate(["hello"], SamplingParams(max_tokens=32)))
