"""Metrics of other engines' exporters, as their own sources name them: SGLang, TGI, llama.cpp, LMDeploy, TensorRT-LLM's `trtllm-serve`."""

from __future__ import annotations

OTHERS: dict[str, str] = {
    "sglang:num_running_reqs": "vllm:num_requests_running", "sglang:num_queue_reqs": "vllm:num_requests_waiting", "sglang:token_usage": "vllm:kv_cache_usage_perc",
    "sglang:prompt_tokens_total": "vllm:prompt_tokens_total", "sglang:generation_tokens_total": "vllm:generation_tokens_total",
    "tgi_batch_current_size": "vllm:num_requests_running", "tgi_queue_size": "vllm:num_requests_waiting",
    "llamacpp:requests_processing": "vllm:num_requests_running", "llamacpp:requests_deferred": "vllm:num_requests_waiting", "llamacpp:kv_cache_usage_ratio": "vllm:kv_cache_usage_perc",
    "llamacpp:prompt_tokens_total": "vllm:prompt_tokens_total", "llamacpp:tokens_predicted_total": "vllm:generation_tokens_total",
    "lmdeploy:num_requests_running": "vllm:num_requests_running", "lmdeploy:num_requests_waiting": "vllm:num_requests_waiting", "lmdeploy:gpu_cache_usage_perc": "vllm:gpu_cache_usage_perc",
    "trtllm_num_requests_running": "vllm:num_requests_running", "trtllm_num_requests_waiting": "vllm:num_requests_waiting", "trtllm_kv_cache_utilization": "vllm:kv_cache_usage_perc",
}  # fmt: skip
"""Metrics of other engines and the name under which their samples are kept: rules ask for a quantity, not for an exporter."""
