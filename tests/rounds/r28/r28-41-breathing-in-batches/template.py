import ray
from ray.data.llm import vLLMEngineProcessorConfig, build_llm_processor

config = vLLMEngineProcessorConfig(
    model_source="unsloth/Llama-3.1-8B-Instruct",
    engine_kwargs={"max_model_len": 16384, "max_num_batched_tokens": 4096, "enable_chunked_prefill": True},
    concurrency=1,
    batch_size=16,
    max_concurrent_batches=2,
    accelerator_type="A10G",
)
