from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

chat = LLMConfig(
    model_loading_config={"model_id": "qwen3-8b", "model_source": "Qwen/Qwen3-8B"},
    engine_kwargs={"max_model_len": 16384, "gpu_memory_utilization": 0.55, "max_num_seqs": 64},
    deployment_config={"autoscaling_config": {"min_replicas": 1, "max_replicas": 1, "target_ongoing_requests": 64},
                       "max_ongoing_requests": 128},
    placement_group_config=dict(bundles=[dict(GPU=0.5)]),
    runtime_env=dict(env_vars={"VLLM_RAY_PER_WORKER_GPUS": "0.5"}),
)
embed = LLMConfig(
    model_loading_config={"model_id": "qwen3-embed", "model_source": "Qwen/Qwen3-Embedding-0.6B"},
    engine_kwargs={"max_model_len": 8192, "gpu_memory_utilization": 0.45, "task": "embed"},
    deployment_config={"autoscaling_config": {"min_replicas": 1, "max_replicas": 1}},
    placement_group_config=dict(bundles=[dict(GPU=0.5)]),
    runtime_env=dict(env_vars={"VLLM_RAY_PER_WORKER_GPUS": "0.5"}),
)
app = build_openai_app({"llm_configs": [chat, embed]})
serve.run(app, blocking=True)
