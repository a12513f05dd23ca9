job "chat14" {
  datacenters = ["fra1"]
  group "vllm" {
    count = 1
    constraint { attribute = "${node.class}"  value = "gpu-l40s" }
    scaling {
      enabled = true
      min     = 1
      max     = 6
      policy {
        cooldown            = "3m"
        evaluation_interval = "60s"
        check "load" {
          source = "nomad-apm"
          query  = "avg_cpu"
          strategy "target-value" { target = 70 }
        }
      }
    }
    task "server" {
      driver = "docker"
      config { image = "registry.fra1/vllm-openai:v0.11.0"  args = ["/alloc/models/Qwen2.5-14B-Instruct", "--max-model-len", "8192", "--max-num-seqs", "48"] }
      resources { cpu = 24000  memory = 40960  device "nvidia/gpu" { count = 1 } }
    }
  }
}
