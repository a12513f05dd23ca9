import json, sys
from transformers import AutoTokenizer
from vllm import LLM, SamplingParams

MODEL = "/data/models/DeepSeek-R1-Distill-Llama-70B"
tok = AutoTokenizer.from_pretrained(MODEL)
prompts = [json.loads(l)["q"] for l in open(sys.argv[1])]
texts = [tok.apply_chat_template([{"role": "user", "content": p}], tokenize=False,
                                 add_generation_prompt=True) for p in prompts]

sp = SamplingParams(temperature=0.6, top_p=0.95, max_tokens=4096)

# 4 cards x 80G = 320G, the model is 140G
llm = LLM(
    model=MODEL,
    max_model_len=8192,
    gpu_memory_utilization=0.95,
    trust_remote_code=True,
    enforce_eager=True,
)
for o in llm.generate(texts, sp):
    print(json.dumps({"a": o.outputs[0].text}, ensure_ascii=False))
