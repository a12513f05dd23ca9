#!/bin/bash
# llm-run.sh NAME   - start a model from the ramdisk, in a scope of its own so that the desktop survives
set -e
if [ -z "$IN_SCOPE" ]; then
  exec systemd-run --user --scope --quiet --unit "llm-run-$$" -p MemoryMax=64G -p MemorySwapMax=0 -p OOMPolicy=kill \
       --setenv=IN_SCOPE=1 "$0" "$@"
fi
rm -rf /mnt/ram/*; mkdir -p /mnt/ram/$1          # tmpfs, size=100G
rsync -a /srv/zoo/$1/ /mnt/ram/$1/
python -m vllm.entrypoints.openai.api_server --model /mnt/ram/$1 --served-model-name ${1,,} \
  --dtype half --tensor-parallel-size 2 --max-model-len 32768 --gpu-memory-utilization 0.92
