job "mixtral" {
  datacenters = ["gpu1"]
  type        = "service"
  group "vllm" {
    count = 1
    network { port "http" { to = 8000 } }
    task "server" {
      driver = "docker"
      config {
        image    = "vllm/vllm-openai:v0.6.3.post1"
        ports    = ["http"]
        shm_size = 17179869184
        args = [
          "--model", "/models/Mixtral-8x7B-Instruct-v0.1",
          "--served-model-name", "mixtral",
          "--max-model-len", "4096",
          "--gpu-memory-utilization", "0.8",
          "--disable-log-requests",
        ]
        volumes = ["/srv/models:/models:ro"]
      }
      resources {
        cpu    = 16000
        memory = 131072
        device "nvidia/gpu" { count = 2 }
      }
    }
  }
}
