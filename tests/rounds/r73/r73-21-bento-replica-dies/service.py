import uuid
from typing import AsyncGenerator, Optional

import bentoml
from annotated_types import Ge, Le
from typing_extensions import Annotated

MODEL_ID = "microsoft/phi-4"
MAX_TOKENS = 4096

ENGINE_CONFIG = {
    "model": MODEL_ID,
    "max_model_len": 4096,
    "gpu_memory_utilization": 0.98,
    "disable_log_requests": True,
}


@bentoml.service(
    name="bentovllm-phi-4-14b-service",
    traffic={"timeout": 300, "concurrency": 256},
    resources={"gpu": 1, "gpu_type": "nvidia-a100-40gb"},
)
class VLLM:
    def __init__(self) -> None:
        from vllm import AsyncEngineArgs, AsyncLLMEngine
        self.engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(**ENGINE_CONFIG))

    @bentoml.api
    async def generate(self, prompt: str, max_tokens: Annotated[int, Ge(128), Le(MAX_TOKENS)] = 512) -> AsyncGenerator[str, None]:
        from vllm import SamplingParams
        stream = await self.engine.add_request(uuid.uuid4().hex, prompt, SamplingParams(max_tokens=max_tokens))
        cursor = 0
        async for out in stream:
            text = out.outputs[0].text
            yield text[cursor:]
            cursor = len(text)
