import json
from vllm import LLM, SamplingParams
MODEL = "/data/models/vicuna-13b-v1.5"
prompts = [json.loads(l)["q"] for l in open("faq_12k.jsonl")]
# beam search made the engine abort with "lack of CPU swap space", hence 10 instead of the default 4
llm = LLM(model=MODEL, tensor_parallel_size=4, swap_space=10, gpu_memory_utilization=0.9)
sp = SamplingParams(n=4, best_of=4, use_beam_search=True, temperature=0, max_tokens=256)
out = llm.generate(prompts, sp)
