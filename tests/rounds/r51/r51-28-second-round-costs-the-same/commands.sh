# server (hgx-a, GPUs 0-3)
vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 --max-model-len 32768 --load-format dummy --port 8100
# client, same host
python benchmarks/long_doc_qa/long_doc_qa.py --model meta-llama/Llama-3.1-70B-Instruct --port 8100 --num-documents 50 --document-length 10000 --output-len 100 --repeat-count 1 --repeat-mode tile --max-inflight-requests 4
# second client run, the next morning, server restarted
python benchmarks/long_doc_qa/long_doc_qa.py --model meta-llama/Llama-3.1-70B-Instruct --port 8100 --num-documents 30 --document-length 10000 --output-len 100 --repeat-count 1 --repeat-mode tile --max-inflight-requests 4
