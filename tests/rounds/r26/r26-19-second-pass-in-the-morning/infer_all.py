# infer_all.py, finished yesterday 23:10 with "done, 4 shards written"; this morning the second pass does not start
import ray
from vllm import LLM, SamplingParams
ray.init()
@ray.remote(num_gpus=2)
def run(shard):
    llm = LLM("/share/models/Qwen2.5-32B-Instruct", tensor_parallel_size=2)
    ...
    return len(out)
print(ray.get([run.remote(s) for s in range(4)]))
ray.shutdown()
