#!/bin/bash
# run-b.sh   second copy of qwen3-32b on this box, NPU 4-7
docker rm -f qwen3-32b-b 2>/dev/null
docker run -d --name qwen3-32b-b --pid=host --net=host --shm-size 64g --privileged=false \
  --device /dev/davinci4 --device /dev/davinci5 --device /dev/davinci6 --device /dev/davinci7 \
  --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc \
  -v /usr/local/Ascend/driver:/usr/local/Ascend/driver -v /data/models:/data/models:ro \
  -e ASCEND_RT_VISIBLE_DEVICES=4,5,6,7 -e PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:256 \
  hub.local/vllm-ascend:v0.11.0rc1 \
  vllm serve /data/models/Qwen3-32B --port 8101 --served-model-name qwen3-32b-b -tp 4 \
  --max-model-len 32768 --gpu-memory-utilization 0.9 --max-num-seqs 128
