# terminal 1
conda activate zerosearch
python -m sglang.launch_server --model-path /data/models/SearchSimulation_14B --host 0.0.0.0 --tp 1 --dp 1 --port 6001

# terminal 2
conda activate zerosearch
bash train_grpo.sh NUM_GPUS_PER_NODE 2 MODEL_PATH /data/models/Qwen2.5-3B-Instruct DATA_PATH data TOTAL_STEPS 203 IP localhost SEARCH_MODE simulate_sft SIMULATION_LLM SearchSimulation_14B START_THRESHOLD 0.25 END_THRESHOLD 0.5
