# PPL over wikitext-2 windows, one request = one 4096 token window
import os
os.environ["VLLM_USE_V1"] = "0"
from vllm import LLM, SamplingParams, TokensPrompt

llm = LLM(model="/data/quant/llama2-7b-gptq-w4g128", dtype="float16",
          max_model_len=4096, max_num_batched_tokens=32768, max_num_seqs=64,
          gpu_memory_utilization=0.95, enable_prefix_caching=False)
sp = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0, detokenize=False)
windows = load_windows("wikitext2", 4095)        # 83 windows
outs = llm.generate([TokensPrompt(prompt_token_ids=w) for w in windows], sp)
