# planned layout for the GH200 (three engines, one card), from the capacity sheet
#   rewriter   Distill-Llama-8B    0.18
#   judge      Qwen3-14B           0.45   (not deployed before April)
#   embedder   bge-m3              0.08   (not deployed before April)
vllm serve deepseek-ai/DeepSeek-R1-Distill-Llama-8B --port 8101 --gpu-memory-utilization 0.18 --max-model-len 32768
