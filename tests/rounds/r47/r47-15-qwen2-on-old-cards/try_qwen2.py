from vllm import LLM, SamplingParams

MODEL = "/data/models/Qwen2-72B-Instruct-GPTQ-Int8"
PROMPTS = [open(p).read() for p in ("a.txt", "b.txt", "c.txt")]

# 18:37   gpu_memory_utilization=0.98, nothing else
# 19:02   added max_model_len=8192, enforce_eager=True
llm = LLM(model=MODEL, tensor_parallel_size=4, quantization="gptq", dtype="float16",
          gpu_memory_utilization=0.98)

for o in llm.generate(PROMPTS, SamplingParams(temperature=0.3, max_tokens=256)):
    print(o.outputs[0].text)
