# llm part of the voice stack; flow + vocoder are loaded after the engine is up
MODEL_DIR = "/models/CosyVoice2-0.5B"
ENGINE_ARGS = {
    "block_size": 16,
    "swap_space": 0,
    "gpu_memory_utilization": 0.2,
    "max_num_batched_tokens": 4096,
    "max_model_len": 1024,
    "max_num_seqs": 256,
    "disable_log_requests": True,
    "disable_log_stats": True,
    "dtype": "float16",
}
