job "coder" {
  datacenters = ["dev"]
  group "vllm" {
    network { port "http" { to = 8000 } }
    restart { attempts = 3  interval = "5m"  delay = "15s"  mode = "delay" }
    task "vllm" {
      driver = "docker"
      config {
        image    = "vllm/vllm-openai:v0.13.0"
        ports    = ["http"]
        shm_size = 8589934592
        args = [
          "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8",
          "--host", "0.0.0.0",
          "--served-model-name", "coder",
          "--enable-auto-tool-choice",
          "--tool-call-parser", "qwen3_coder",
        ]
      }
      env { HF_HOME = "/alloc/hf" }
      resources {
        cpu = 8000
        memory = 49152
        device "nvidia/gpu" { count = 1 }
      }
    }
  }
}
