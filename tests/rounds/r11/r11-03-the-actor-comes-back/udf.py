class UDF:
    def __init__(self):
        self.memory = []
        self.llm = LLM(model="unsloth/Llama-3.2-1B-Instruct", enforce_eager=True)
    def __call__(self, batch):
        self.memory.append("x" * 1_600_000_000)
        return self.run(batch)
