job "slides-vl" {
  datacenters = ["hs1"]
  group "inference" {
    network { port "http" { static = 8000 } }
    task "vllm" {
      driver = "docker"
      config {
        image    = "vllm/vllm-openai:v0.16.0"
        ipc_mode = "host"
        args = ["Qwen/Qwen2.5-VL-7B-Instruct", "--served-model-name", "slides-vl", "--max-model-len", "16384",
                "--limit-mm-per-prompt", "{\"image\": 12}",
                # 17 Mar: tokenising was the bottleneck with one front end
                "--api-server-count", "6",
                "--mm-processor-cache-gb", "8"]
      }
      resources {
        cpu    = 32000
        memory = 65536
        device "nvidia/gpu" { count = 1 }
      }
      restart { attempts = 10  interval = "24h"  delay = "15s"  mode = "delay" }
    }
  }
}
