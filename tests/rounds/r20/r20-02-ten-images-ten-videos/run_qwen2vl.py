from vllm import LLM, SamplingParams
from qwen_vl_utils import process_vision_info

MODEL = "/models/Qwen2-VL-72B-Instruct"

# same script works with the 7B
llm = LLM(
    model=MODEL,
    limit_mm_per_prompt={"image": 10, "video": 10},
)
sampling = SamplingParams(temperature=0.1, top_p=0.001, repetition_penalty=1.05, max_tokens=256)
