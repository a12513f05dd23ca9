#!/bin/sh
# /etc/sysctl.d/80-huge.conf has vm.nr_hugepages = 20480 since the DPDK experiments
exec python3 -m sglang.launch_server --model-path /srv/models/Qwen3-14B-AWQ --host 0.0.0.0 --port 30000 \
  --mem-fraction-static 0.85 --page-size 64 --chunked-prefill-size 2048 \
  --enable-hierarchical-cache --hicache-ratio 2 --hicache-write-policy write_through
# without the three hicache flags it comes up in 40 s
