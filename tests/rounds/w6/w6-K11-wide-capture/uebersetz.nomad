job "uebersetz" {
  datacenters = ["sgp1"]
  group "llm" {
    restart { attempts = 2  interval = "30m"  delay = "20s"  mode = "fail" }
    task "vllm" {
      driver = "docker"
      config {
        image = "vllm/vllm-openai:v0.11.2"
        args  = ["--model","Qwen/Qwen3-30B-A3B","--max-model-len","40960","--gpu-memory-utilization","0.93","--max-num-seqs","1024","--compilation-config","{\"cudagraph_mode\":\"FULL_AND_PIECEWISE\",\"cudagraph_capture_sizes\":[1,2,4,8,16,24, ... ,1016,1024]}"]
        shm_size = 17179869184
      }
      resources { cpu = 16000  memory = 131072  device "nvidia/gpu" { count = 1 } }
    }
  }
}
