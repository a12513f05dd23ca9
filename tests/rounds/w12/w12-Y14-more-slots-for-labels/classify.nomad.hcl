job "classify" {
  datacenters = ["dc-west"]
  type        = "service"
  group "llm" {
    count = 1
    restart { attempts = 2, interval = "30m", delay = "25s", mode = "fail" }
    task "server" {
      driver = "docker"
      config {
        image    = "vllm/vllm-openai:v0.10.0"
        ipc_mode = "host"
        args = ["--host", "0.0.0.0", "--model", "Qwen/Qwen2.5-7B-Instruct", "--served-model-name", "classify",
                "--max-model-len", "4096", "--max-num-seqs", "2048", "--disable-log-requests"]   # was 512 until 12 Aug
      }
      resources {
        cpu    = 8000
        memory = 32768
        device "nvidia/gpu" { count = 1  constraint { attribute = "${device.model}" value = "NVIDIA L4" } }
      }
    }
  }
}
