# batch_caption.py  (the eager variant of this has been fine for weeks)
from vllm import LLM, SamplingParams

llm = LLM(
    model="/models/Qwen2.5-VL-72B-Instruct",
    tensor_parallel_size=4,
    dtype="float16",
    max_model_len=32768,
    max_num_seqs=8192,
    max_num_batched_tokens=65536,
    limit_mm_per_prompt={"image": 10},
    enforce_eager=False,
    enable_prefix_caching=True,
    enable_chunked_prefill=True,
    disable_custom_all_reduce=True,
    gpu_memory_utilization=0.9,
)
