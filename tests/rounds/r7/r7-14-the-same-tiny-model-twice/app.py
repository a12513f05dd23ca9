@serve.deployment(name="model1", ray_actor_options={"num_gpus": 0.2})
class MyModel:
    def __init__(self):
        self.engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model="/models/tinyllama", gpu_memory_utilization=0.2))
# model2: the same with another name
