model = AutoAWQForCausalLM.from_pretrained('/models/ft-70B-chat', **{'low_cpu_mem_usage': True})
model.quantize(tokenizer, quant_config={'zero_point': True, 'q_group_size': 128, 'w_bit': 4, 'version': 'GEMM'})
