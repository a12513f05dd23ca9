# docreader.py (part)
llm = LLM(model="Qwen/Qwen2-VL-7B-Instruct", limit_mm_per_prompt={"image": 10, "video": 10})
sp = SamplingParams(temperature=0.1, top_p=0.001, repetition_penalty=1.05, max_tokens=256, stop_token_ids=[])
engine_lock = threading.Lock()

@app.post("/read")
def read():
    job = Job(request)              # logs "received"
    inputs = build(job)             # chat template + process_vision_info
    job.log("waiting for engine lock")
    with engine_lock:
        job.log("lock taken, llm.generate()")
        out = llm.generate([inputs], sampling_params=sp)
    return jsonify(text=out[0].outputs[0].text)
