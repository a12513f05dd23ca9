from litellm import completion
def ask(q):
    return completion(model="vllm/facebook/opt-1.3b", messages=[{"role": "user", "content": q}])
