import bentoml
MAX_MODEL_LEN = 4096
@bentoml.service(
    name="rag-llama3.1-8b",
    traffic={"timeout": 300, "concurrency": 256},   # was: {"timeout": 300, "concurrency": 12, "external_queue": True}
    resources={"gpu": 1, "gpu_type": "nvidia-a10g"},
)
class VLLM:
    def __init__(self):
        from vllm import AsyncEngineArgs, AsyncLLMEngine
        self.engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(
            model="meta-llama/Meta-Llama-3.1-8B-Instruct", max_model_len=MAX_MODEL_LEN, gpu_memory_utilization=0.9))
