vllm serve /models/Meta-Llama-3.1-8B-Instruct --served-model-name llama31-8b --max-model-len 16384 --gpu-memory-utilization 0.9 \
  --enable-lora --max-loras 2 --max-lora-rank 32 --max-cpu-loras 16 \
  --lora-modules hr-de=/adapters/hr-de legal-fr=/adapters/legal-fr legal-de=/adapters/legal-de claims=/adapters/claims kyc=/adapters/kyc mail-it=/adapters/mail-it mail-de=/adapters/mail-de sql=/adapters/sql minutes=/adapters/minutes tender=/adapters/tender hr-fr=/adapters/hr-fr
