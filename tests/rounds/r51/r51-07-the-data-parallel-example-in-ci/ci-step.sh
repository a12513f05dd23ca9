# step "distributed offline examples", queue gpu-4x-l4
cd examples/offline_inference
python3 data_parallel.py --model ibm-research/PowerMoE-3b --dp-size 2 --tp-size 2
