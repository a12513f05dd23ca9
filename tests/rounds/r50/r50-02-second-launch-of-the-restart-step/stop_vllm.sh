# excerpt, .ci/lib/restart.sh
stop_vllm() {
  kill -TERM "$VLLM_PID"
  local waited=0
  # the LMCache server lives on GPU 0, so look at GPU 1
  while [ "$(nvidia-smi -i 1 --query-gpu=memory.used --format=csv,noheader,nounits)" -gt 100 ]; do
    sleep 2; waited=$((waited+2)); [ $waited -ge 90 ] && return 1
  done
  log "GPU 1 at $(used 1) MiB, vLLM has let go of its memory (${waited} s)"
}
