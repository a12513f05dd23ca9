docker run --rm --name glm --gpus all --ipc=host --shm-size 200g -p 8000:8000 \
  -v /tank/models/GLM-5.3-Flash-AWQ-W4A16:/model:ro \
  lazymio/vllm-backport:latest-sm86 /model \
  --served-model-name glm-flash --tensor-parallel-size 2 \
  --cpu-offload-gb 90 --cpu-offload-params experts --offload-backend uva \
  --max-model-len 16384 --max-num-seqs 2 --gpu-memory-utilization 0.92 --enforce-eager
