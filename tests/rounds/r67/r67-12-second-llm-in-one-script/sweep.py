import contextlib, gc, os
import torch
from vllm import LLM, SamplingParams
from vllm.distributed import cleanup_dist_env_and_memory

sp = SamplingParams(temperature=0.0, max_tokens=512)
from util import save
keep, refs = [], []
ask = [l.strip() for l in open("questions.txt")]

for path in ["/ckpt/qwen25-7b-sft/step-800", "/ckpt/qwen25-7b-sft/step-1600"]:
    model = LLM(model=path, gpu_memory_utilization=0.9, max_model_len=8192)
    outs = model.generate(ask, sp)
    save(path, outs)
    keep.append(outs); refs.append(model)   # for the plots at the end
    del model
    cleanup_dist_env_and_memory()
    with contextlib.suppress(AssertionError):
        torch.distributed.destroy_process_group()
    gc.collect()
    torch.cuda.empty_cache()
