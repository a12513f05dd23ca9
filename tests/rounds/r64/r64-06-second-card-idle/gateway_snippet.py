# gateway.py, started with CUDA_VISIBLE_DEVICES=0,1 python gateway.py
engine_args = AsyncEngineArgs(
    model="/models/Yi-34B-Chat",
    trust_remote_code=True,
    engine_use_ray=True,        # hoped this would spread it
    disable_custom_all_reduce=True,
    gpu_memory_utilization=0.9,
)
engine = AsyncLLMEngine.from_engine_args(engine_args)
