from vllm import LLM, SamplingParams
import json

prompts = [json.loads(l)["q"] for l in open("/data/seed_q.jsonl")]      # 10000 of them, 60..900 tokens
llm = LLM(model="/mnt/w/Meta-Llama-3-8B-Instruct",
          enable_chunked_prefill=True, max_num_batched_tokens=1024,
          max_num_seqs=512, swap_space=20, gpu_memory_utilization=0.46)     # other half of the A100-80G is the reward model, loads later
sp = SamplingParams(n=8, temperature=0.9, top_p=0.95, max_tokens=1024)
outs = llm.generate(prompts, sp)
