# serve environment, shared between the a-partition and l40s
export HF_HUB_OFFLINE=1
export VLLM_LOGGING_LEVEL=INFO
export NCCL_SOCKET_IFNAME=ib0
# 2025-10-14: first card also carries the embedder on cn-gpu03, so give it fewer layers
export VLLM_PP_LAYER_PARTITION="16,21,21,22"
