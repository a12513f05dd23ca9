from vllm import LLM, SamplingParams
# one request per (query, passage) pair, logprobs of yes/no
llm = LLM(
    model="/data/Qwen3-Reranker-0.6B",
    dtype="half",
    max_model_len=8192,
    max_num_batched_tokens=8192,
    max_num_seqs=4096,          # so the 4k pairs of one query go in one batch
    enable_prefix_caching=True,
    enforce_eager=True,
    gpu_memory_utilization=0.9,
)
params = SamplingParams(temperature=0, max_tokens=1, logprobs=20)
