#!/bin/sh
# 755 GiB box, one 48 GB card, experts on the CPU
exec /opt/ik/llama-server -m /srv/gguf/DeepSeek-V4-Flash-MXFP4.gguf -c 1000000 -np 1 -b 4096 -ub 4096 -fa -ngl 99 --cpu-moe --no-mmap \
  --cache-ram 8192 --host 0.0.0.0 --port 8080
