# run.sh  (4 cards: fine since October. Today 8 cards: dead)
docker run --rm --name llama70 --gpus '"device=0,1,2,3,4,5,6,7"' \
  --shm-size=256m -e NCCL_P2P_DISABLE=1 -e NCCL_DEBUG=INFO \
  -v /data/models:/models -p 8000:8000 vllm/vllm-openai:v0.6.3.post1 \
  --model /models/Llama-3.1-70B-Instruct --tensor-parallel-size 8 --max-model-len 16384

# from a second shell, while it was still up:
$ docker exec llama70 df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
shm             256M  252M  4.7M  99% /dev/shm
$ docker exec llama70 ls /dev/shm | wc -l
29
# the same with device=0,1,2,3 and --tensor-parallel-size 4:
shm             256M  158M   99M  62% /dev/shm
$ nvidia-smi --query-gpu=index,name,memory.used,memory.total --format=csv,noheader | sort -u -k2
0, NVIDIA A100 80GB PCIe, 517 MiB, 81920 MiB
