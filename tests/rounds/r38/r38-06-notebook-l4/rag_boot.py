from langchain_community.llms import VLLM

llm = VLLM(
    model="meta-llama/Meta-Llama-3.1-8B-Instruct",
    trust_remote_code=True,
    max_new_tokens=256,
    top_k=10,
    top_p=0.95,
    temperature=0.2,
)
print(llm.invoke("Which form do I need for a replacement badge?"))
