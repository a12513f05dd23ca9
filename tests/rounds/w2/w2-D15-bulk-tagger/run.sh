# run.sh (tagger, high concurrency profile)
export VLLM_USE_V1=1
exec vllm serve microsoft/Phi-4-mini-instruct --max-model-len 16384 --max-num-seqs 4096 --max-num-batched-tokens 8192 --served-model-name tagger
