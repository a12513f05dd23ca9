#!/bin/bash
# start on every node:  ./cluster.sh head|worker
IMG=vllm/vllm-openai:v0.9.2
HEAD=10.40.3.11
if [ "$1" = head ]; then CMD="ray start --block --head --port=6379 --node-ip-address=$HEAD"; else CMD="ray start --block --address=$HEAD:6379"; fi
docker run -d --rm --name ray-$1 --network host --shm-size 32g --gpus all \
  -v /data/hf:/srv/.cache/huggingface \
  -e NCCL_DEBUG=INFO \
  --entrypoint /bin/bash $IMG -c "$CMD"
# 2026-02-16 removed the env file (-e NCCL_SOCKET_IFNAME / GLOO_SOCKET_IFNAME lines), new hosts have bond0 and not ens1f0. mk
