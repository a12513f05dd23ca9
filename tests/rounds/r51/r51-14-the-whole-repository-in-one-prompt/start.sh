docker run -d --name coder --network host --shm-size 32g \
  --device /dev/davinci0 --device /dev/davinci1 \
  --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc \
  -v /models:/models quay.io/ascend/vllm-ascend:main \
  vllm serve /models/DeepSeek-Coder-V2-Lite-Instruct --served-model-name coder --host 0.0.0.0 --port 8080 \
    --trust-remote-code --tensor-parallel-size 2 --enforce-eager \
    --max-model-len 131072 --max-num-batched-tokens 8192 --max-num-seqs 16
