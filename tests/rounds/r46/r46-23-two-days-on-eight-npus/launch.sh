export ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
nohup vllm serve /data/model/Qwen3-next-80B \
  --tensor-parallel-size 8 \
  --max-model-len 51200 \
  --gpu-memory-utilization 0.65 \
  --max-num-batched-tokens 4096 \
  --compilation-config '{"cudagraph_mode":"FULL_DECODE_ONLY"}' \
  --served-model-name Qwen3-next-80B >> "$LOG" 2>&1 &
# until 26 January the --compilation-config line said PIECEWISE
