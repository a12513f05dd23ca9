from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

cfg = LLMConfig(
    model_loading_config=dict(model_id="qwen3-4b", model_source="Qwen/Qwen3-4B-Instruct-2507"),
    engine_kwargs=dict(gpu_memory_utilization=0.45, max_model_len=4096, max_num_seqs=16, max_num_batched_tokens=2048),
    deployment_config=dict(autoscaling_config=dict(min_replicas=8, max_replicas=8), max_ongoing_requests=16),
    placement_group_config=dict(bundles=[dict(GPU=0.5)]),
    runtime_env=dict(env_vars={"VLLM_RAY_PER_WORKER_GPUS": "0.5"}),
)
serve.run(build_openai_app({"llm_configs": [cfg]}), blocking=True)
