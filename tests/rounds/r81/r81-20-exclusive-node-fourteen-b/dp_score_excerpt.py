def main(a, dp_rank, q):
    # as in the data_parallel example; the engine picks the device for its dp rank itself
    os.environ["VLLM_DP_RANK"] = str(dp_rank)
    os.environ["VLLM_DP_SIZE"] = str(a.dp_size)
    os.environ["VLLM_DP_MASTER_IP"] = "127.0.0.1"
    os.environ["VLLM_DP_MASTER_PORT"] = str(a.port)
    llm = LLM(model=a.model, tensor_parallel_size=a.tp_size, max_model_len=a.max_model_len)
    ...

if __name__ == "__main__":
    for r in range(args.dp_size):
        p = Process(target=main, args=(args, r, q)); p.start()
        print(f"[launcher] VLLM_USE_V1={os.environ.get('VLLM_USE_V1')}, spawning dp_rank {r} pid {p.pid}", flush=True)
