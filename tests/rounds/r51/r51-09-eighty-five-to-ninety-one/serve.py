# swift 3.5, torch 2.5.1 (CUDA 12.1), transformers 4.52.3
engine = VllmEngine(
    "/models/Qwen2-VL-2B-Instruct",
    model_type="qwen2_vl",
    max_model_len=10240,
    gpu_memory_utilization=0.7,
    limit_mm_per_prompt={"image": 3, "video": 2},
)
