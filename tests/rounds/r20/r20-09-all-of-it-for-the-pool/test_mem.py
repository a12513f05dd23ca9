import time, torch
from vllm import LLM, SamplingParams
prompts = ["hello " * 2000 for _ in range(512)]

def test_llm(model, n, max_tokens, tp_size):
    sp = SamplingParams(temperature=0.0, top_p=1.0, max_tokens=max_tokens, ignore_eos=True)
    llm = LLM(model=model, trust_remote_code=True, enforce_eager=True,
              disable_log_stats=False, max_num_seqs=n, tensor_parallel_size=tp_size,
              disable_custom_all_reduce=True, gpu_memory_utilization=1.0)
    torch.cuda.synchronize()
    outputs = llm.generate(prompts[:n], sp)
    free, total = torch.cuda.mem_get_info()
    print("free", free >> 20, "MiB of", total >> 20)

test_llm("/data/models/Qwen2-7B", 512, 128, 1)
