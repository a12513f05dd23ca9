job "l70" {
  group "llm" {
    task "vllm" {
      driver = "docker"
      config {
        image = "vllm/vllm-openai:v0.10.2"
        shm_size = 17179869184
        args = ["--model", "/models/Llama-3.3-70B-Instruct-FP8-dynamic", "--served-model-name", "l70", "--max-model-len", "8192", "--max-num-seqs", "32", "--gpu-memory-utilization", "0.9"]
      }
      resources {
        cpu = 32000
        memory = 262144
        device "nvidia/gpu" { count = 4 }
      }
    }
  }
}
