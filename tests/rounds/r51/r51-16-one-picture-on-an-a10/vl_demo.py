# from examples/offline_inference_vision_language.py, cut down to the one model
from transformers import AutoTokenizer
from vllm import LLM, SamplingParams
from vllm.assets.image import ImageAsset
import sys

name = "openbmb/MiniCPM-Llama3-V-2_5"
extra = {}
if len(sys.argv) > 1:
    extra["max_num_seqs"] = int(sys.argv[1])

tok = AutoTokenizer.from_pretrained(name, trust_remote_code=True)
llm = LLM(model=name, trust_remote_code=True, **extra)
msg = [{"role": "user", "content": "(<image>./</image>)\nWhat is the content of this image?"}]
prompt = tok.apply_chat_template(msg, tokenize=False, add_generation_prompt=True)
out = llm.generate({"prompt": prompt, "multi_modal_data": {"image": ImageAsset("cherry_blossom").pil_image}},
                   SamplingParams(temperature=0.2, max_tokens=64))
print(out[0].outputs[0].text)
