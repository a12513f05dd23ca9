import json, statistics as st
from vllm import LLM, SamplingParams

prompts = [json.loads(l)["prompt"] for l in open("tickets.jsonl")]      # or tweets.jsonl
llm = LLM("/data/hf/Meta-Llama-3.1-8B-Instruct", tensor_parallel_size=4,
          enable_prefix_caching=True, use_v2_block_manager=True,
          max_num_batched_tokens=16000, max_model_len=16000,
          disable_log_stats=False)
outs = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=1))
ttft = [o.metrics.first_token_time - o.metrics.arrival_time for o in outs]
print("TTFT mean %.1f s  p50 %.1f s  min %.2f s  max %.1f s" % (st.mean(ttft), st.median(ttft), min(ttft), max(ttft)))
