from ray.data.llm import vLLMEngineProcessorConfig, build_llm_processor
import ray
cfg = vLLMEngineProcessorConfig(
    model_source="Qwen/Qwen3-14B",
    engine_kwargs=dict(max_model_len=16384, gpu_memory_utilization=0.9, max_num_batched_tokens=8192,
                       kv_offloading_size=48, kv_offloading_backend="native"),   # was 24 until 09-02
    concurrency=1, batch_size=64)
ds = ray.data.read_parquet("s3://corpus/2026-08/").materialize()
proc = build_llm_processor(cfg, preprocess=pre, postprocess=post)
proc(ds).write_parquet("s3://corpus-out/2026-08/")
