export FASTCHAT_WORKER_API_EMBEDDING_BATCH_SIZE=1
python3 -m fastchat.serve.controller &
python3 -m fastchat.serve.model_worker --model-path ~/llm_models/vicuna-13b-v1.5-16k --max-gpu-memory "30GiB" &
python3 -m fastchat.serve.openai_api_server --host 0.0.0.0 --port 8766
