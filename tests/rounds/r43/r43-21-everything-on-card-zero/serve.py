from tensorrt_llm import LLM

def main():
    llm = LLM(model="/srv/models/Mistral-Small-3.1-24B-Instruct-2503", tensor_parallel_size=8, dtype="bfloat16")
    print(llm.generate("hello"))

if __name__ == "__main__":
    main()
