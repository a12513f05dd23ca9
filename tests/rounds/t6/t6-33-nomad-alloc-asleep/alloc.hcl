service {
  name = "llm"
  port = "metrics"
  check { type = "tcp"  port = "metrics"  interval = "10s"  timeout = "2s" }   # node exporter side-car
}
resources { cores = 8  memory = 65536  device "nvidia/gpu" { count = 1 } }
