from vllm import LLM, SamplingParams
llm = LLM(model="meta-llama/Llama-3.2-11B-Vision-Instruct", max_model_len=4096, gpu_memory_utilization=0.9)
# 2nd try, works: LLM(..., max_num_seqs=16, enforce_eager=True)
