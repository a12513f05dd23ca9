import json, sys
from vllm import LLM, SamplingParams

prompts = [json.loads(l)["text"][:600] for l in open(sys.argv[1])]      # 5000 short ones, about 150 tokens
llm = LLM(model="/nas/Qwen3-1.7B",
          dtype="float16",
          max_model_len=4096,
          gpu_memory_utilization=0.9,
          speculative_config={"model": "/nas/Qwen3-0.6B", "num_speculative_tokens": 8})
sp = SamplingParams(temperature=0.7, top_p=0.9, max_tokens=128)
outs = llm.generate(prompts, sp)
