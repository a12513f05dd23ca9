docker run -d --name xinference --gpus all -p 9997:9997 \
  -e XINFERENCE_MODEL_SRC=modelscope \
  -v /data/xinf:/data/xinf -e XINFERENCE_HOME=/data/xinf \
  -e NCCL_DEBUG=INFO \
  xprobe/xinference:v0.12.0 \
  xinference-local -H 0.0.0.0 --log-level debug
