# /etc/nomad.d/jobs/qwen32.nomad (task stanza)
task "vllm" {
  driver = "docker"
  config {
    image = "vllm/vllm-openai:v0.11.0"
    args  = ["Qwen/Qwen2.5-32B-Instruct", "--max-model-len", "32768",
             # 0.9 gave only 25k tokens of cache and refused 32768, so the size is set by hand since 4 Nov
             "--kv-cache-memory-bytes", "16106127360",
             "--max-num-batched-tokens", "16384", "--disable-uvicorn-access-log"]
    ipc_mode = "host"
  }
  resources { cpu = 16000  memory = 131072  device "nvidia/gpu" { count = 1 } }
}
