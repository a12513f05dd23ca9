import os
from vllm import LLM

os.environ["CUDA_VISIBLE_DEVICES"] = "1,2"
big = LLM("/data/m/planner-awq-42g", max_model_len=50, gpu_memory_utilization=0.9, tensor_parallel_size=2)

os.environ["CUDA_VISIBLE_DEVICES"] = "3"
small = LLM("/data/m/coder-22g", max_model_len=50, gpu_memory_utilization=0.9, tensor_parallel_size=1)
