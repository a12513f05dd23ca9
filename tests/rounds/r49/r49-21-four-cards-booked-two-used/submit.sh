runai inference distributed submit mistral-119b-dist \
  -p nlp-platform -i registry.corp.example/ai/vllm-openai:v0.18.0 \
  --existing-pvc claimname=nlp-platform,path=/data \
  --workers 2 -g 2 --serving-port container=8000,authorization-type=authenticatedUsers \
  --environment-variable NCCL_IB_DISABLE=1 --environment-variable NCCL_DEBUG=INFO \
  --run-as-uid 2000 --run-as-gid 2000 --run-as-non-root --preemptibility preemptible \
  -- --model /data/input/Models/Mistral-Small-4-119B-2603 --served-model-name mistral4 --dtype bfloat16 \
     --tensor-parallel-size 2 --max-model-len 32768
