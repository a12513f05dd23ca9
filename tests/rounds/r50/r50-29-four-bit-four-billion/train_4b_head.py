# train_4b.py, first lines
import os
os.environ["UNSLOTH_VLLM_STANDBY"] = "1"
from unsloth import FastLanguageModel

model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "unsloth/Qwen3-4B-Base",
    max_seq_length = 2000,
    load_in_4bit = True,
    fast_inference = True,
    max_lora_rank = 32,
    gpu_memory_utilization = 0.9,     # standby makes 0.8642 out of it
)
