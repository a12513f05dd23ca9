args = AsyncEngineArgs(model='/models/llama-30b', preemption_mode='swap', scheduling_policy='priority')
engine = _AsyncLLMEngine.from_engine_args(args)   # own loop: step_async() in a task, about 2 requests a second come in
