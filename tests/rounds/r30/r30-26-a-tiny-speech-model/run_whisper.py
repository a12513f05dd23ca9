import time
from vllm import LLM, SamplingParams
from vllm.assets.audio import AudioAsset
# straight from the examples folder, only the model is smaller
llm = LLM(
    model="openai/whisper-tiny",
    max_model_len=448,
    max_num_seqs=400,          # second try: 16
    limit_mm_per_prompt={"audio": 1},
    kv_cache_dtype="fp8",
    enforce_eager=True,
)
