from transformers import AutoProcessor
from vllm import LLM, SamplingParams
from qwen_vl_utils import process_vision_info

MODEL_PATH = "/data/ckpt/Qwen2-VL-72B-Instruct"

llm = LLM(
    model=MODEL_PATH,
    limit_mm_per_prompt={"image": 6, "video": 1},
)
sampling_params = SamplingParams(temperature=0.1, top_p=0.001,
                                 repetition_penalty=1.05, max_tokens=256)
# ... messages / processor part unchanged from the model card ...
