# grpo_vllm_one.py (parts)
model_path = "/home/e/models/Llama-3.2-3B-Instruct"
gen_device = 3
Q_batch_size, num_pre_Q, train_batch_size, gen_update_steps = 1, 8, 1, 16
max_prompt_length, max_gen = 400, 700
...
def gen_worker(Q, physics_device):
    os.environ["CUDA_VISIBLE_DEVICES"] = f"{physics_device}"
    sys.stdout = sys.stderr = open("gen_worker.log", "a", buffering=1)
    torch.cuda.set_device(0)
    from vllm import LLM, SamplingParams
    vllm_gen = LLM(model=model_path, gpu_memory_utilization=0.6)
    sampling_params = SamplingParams(n=num_pre_Q, temperature=0.9, max_tokens=max_gen)
...
    if dist.get_rank() == 0:
        p = mp.Process(target=gen_worker, args=(Q, gen_device)); p.start()
    progress = range(1, all_steps+1)
    for step in progress:
        batch = get_batch()
        while batch is None:
            print('waiting for batch...'); time.sleep(5)
            batch = get_batch()
