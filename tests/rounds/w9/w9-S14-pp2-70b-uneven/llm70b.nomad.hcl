job "llm70b" {
  datacenters = ["basement"]
  group "serve" {
    task "vllm" {
      driver = "docker"
      config {
        image   = "vllm/vllm-openai:v0.10.0"
        runtime = "nvidia"
        ipc_mode = "host"
        args = ["--model", "/models/Llama-3.3-70B-Instruct-FP8", "--pipeline-parallel-size", "2",
                "--max-model-len", "32768", "--max-num-seqs", "64", "--served-model-name", "l33-70b"]
      }
      env {
        NVIDIA_VISIBLE_DEVICES   = "0,1"
        # second card of the old box had only 40 GB
        VLLM_PP_LAYER_PARTITION  = "46,34"
        NCCL_P2P_DISABLE         = "1"
      }
      resources { cpu = 16000  memory = 65536 }
    }
  }
}
