# straight from the model's cookbook, only the path is ours
from vllm import LLM, SamplingParams

llm = LLM(
    model="/ckpt/Qwen3-VL-235B-A22B-Instruct",
    trust_remote_code=True,
    gpu_memory_utilization=0.70,
    enforce_eager=False,
    tensor_parallel_size=8,
    limit_mm_per_prompt={"image": 2},
)
