# excerpt, lines 28-44
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.engine.async_llm_engine import AsyncLLMEngine

MODEL_DIR = os.environ.get("MODEL_DIR", "/srv/models/dolphin-2.1-mistral-7b-awq")

args = AsyncEngineArgs(
    model=MODEL_DIR,
    quantization="awq",
    dtype="half",
    disable_log_requests=True,
)

engine = AsyncLLMEngine.from_engine_args(args)
app = FastAPI()
