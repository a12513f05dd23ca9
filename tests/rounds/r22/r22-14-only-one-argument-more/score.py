import json
from vllm import LLM, SamplingParams

llm = LLM(model="/scr/models/Meta-Llama-3-8B-Instruct", max_model_len=8192)
convs = [json.loads(l)["text"] for l in open("dialogues_5.jsonl")]

# works
out = llm.generate(convs, SamplingParams(temperature=0, max_tokens=1))
print([len(o.prompt_token_ids) for o in out])

# does not
out = llm.generate(convs, SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=1))
