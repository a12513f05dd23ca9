#!/usr/bin/env bash
# step 6 of the lab, changed by me: 4 images a prompt instead of 1, RTX PRO 6000 instead of L4
set -euo pipefail
PROJECT=shelf-lens-dev
REGION=europe-west4
gcloud run deploy gemma4-vision \
  --project "$PROJECT" --region "$REGION" \
  --image europe-west4-docker.pkg.dev/$PROJECT/vllm/vllm-openai:v0.19.1 \
  --gpu 1 --gpu-type nvidia-rtx-pro-6000 --no-gpu-zonal-redundancy \
  --cpu 20 --memory 80Gi --no-cpu-throttling \
  --max-instances 1 --concurrency 24 --port 8080 \
  --add-volume name=models,type=cloud-storage,bucket=$PROJECT-models \
  --add-volume-mount volume=models,mount-path=/models \
  --command vllm \
  --args="serve,/models/gemma-4-26B-A4B-it,--served-model-name,gemma4,--host,0.0.0.0,--port,8080,--max-model-len,32768,--gpu-memory-utilization,0.92,--limit-mm-per-prompt,image:4,--enable-chunked-prefill" \
  --timeout 3600
