from vllm import LLM
# image=1 is fine, need 4 pages per prompt
llm = LLM(
    model="Qwen/Qwen2.5-VL-3B-Instruct",
    max_model_len=65536,
    limit_mm_per_prompt={"image": 4},
)
