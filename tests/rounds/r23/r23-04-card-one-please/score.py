import torch
from vllm import LLM, SamplingParams

torch.cuda.set_device(1)          # card 0 belongs to the vision people

llm = LLM(model="/data/hub/Llama-3.1-8B-Instruct", dtype="bfloat16", max_model_len=8192)
prompts = [l.rstrip("\n") for l in open("questions.txt")]
for o in llm.generate(prompts, SamplingParams(max_tokens=256, temperature=0)):
    print(o.outputs[0].text)
