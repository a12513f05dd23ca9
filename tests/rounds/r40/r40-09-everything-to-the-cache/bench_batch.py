import argparse, time
from vllm import LLM, SamplingParams

p = argparse.ArgumentParser()
p.add_argument("--n", type=int, default=16)
a = p.parse_args()

llm = LLM(model="/ckpt/Qwen-7B-Chat", trust_remote_code=True, dtype="bfloat16",
          gpu_memory_utilization=1.0, enforce_eager=True, max_num_seqs=a.n)
prompts = ["hello " * 2000] * 512
t = time.time()
llm.generate(prompts, SamplingParams(temperature=0, max_tokens=64, ignore_eos=True))
print(a.n, time.time() - t)
