# batch_haiku.py, from the getting-started page, only the bucket changed
import ray
from ray.data.llm import vLLMEngineProcessorConfig, build_llm_processor

config = vLLMEngineProcessorConfig(
    model_source="unsloth/Llama-3.1-8B-Instruct",
    engine_kwargs=dict(
        enable_chunked_prefill=True,
        max_num_batched_tokens=4096,
    ),
    concurrency=1,
    batch_size=64,
)
processor = build_llm_processor(
    config,
    preprocess=lambda row: dict(
        messages=[
            {"role": "system", "content": "You are a bot that completes haikus."},
            {"role": "user", "content": row["item"]},
        ],
        sampling_params=dict(temperature=0.3, max_tokens=250),
    ),
    postprocess=lambda row: dict(answer=row["generated_text"]),
)
ds = ray.data.from_items(["Start of the haiku: Complete this for me..."])
processor(ds).show(limit=1)
