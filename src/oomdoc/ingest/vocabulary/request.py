"""Requests: tokens, times and outcomes, as gateways, SDKs, OpenTelemetry, benchmarks and people name them.

The columns are the words of `ingest.request_keys`, which settles units and times of a request from several of them.
"""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

_MOST_TOKENS = 50_000_000  # the longest contexts served are 10 million
_LONGEST_S = 30 * 86_400

QUANTITIES = (
    Quantity(
        "request.input", "request", "input_tokens", "tokens",
        strong="prompt token, input token, system token, prefix token, prompt size token, prompt token used, context token, user token, isl, prompt token count, prompt size, ctx token, ptok, prompt size token",
        weak="prompt, in, input, prefill, ctx, context, query token, document token, doc token, text token, letter token, page token",
        exact="""input_tokens, prompt_tokens, prompt_token_count, input_token_count, num_prompt_tokens, n_prompt_tokens, prompt_len, input_len,
            input_length, prompt_length, prefill_tokens, context_tokens, tokens_in, in_tokens, llm_input_token, llm_input_tokens,
            gen_ai.usage.input_tokens, gen_ai.usage.prompt_tokens, prompt_eval_count, num_input_tokens, request_tokens, promptTokenCount""",
        high=_MOST_TOKENS,
        samples=(("in_tok", "7420", 7420), ("n_prompt", 7420, 7420), ("usage.prompt_tokens", 7420, 7420), ("promptTokens", "7,420", 7420)),
        not_names=("total_input_tokens", "prompt_tokens_per_s", "prompt_id", "max_input_tokens"),
    ),
    Quantity(
        "request.output", "request", "output_tokens", "tokens",
        strong="output token, new token, output token used, sampled token, osl, token produced, output token count, predicted token, new token count, output size token",
        weak="output, out, completion, generated, new, produced, sampled, predicted",
        exact="""output_tokens, completion_tokens, completion_token_count, generated_tokens, generation_tokens, num_output_tokens,
            num_generated_tokens, num_generation_tokens, num_completion_tokens, output_token_count, output_len, output_length, tokens_out,
            out_tokens, llm_output_token, llm_output_tokens, gen_ai.usage.output_tokens, gen_ai.usage.completion_tokens, eval_count,
            candidates_token_count, response_tokens""",
        high=_MOST_TOKENS,
        samples=(("out_tok", "512", 512), ("generated", 512, 512), ("usage.completion_tokens", 512, 512), ("completionTokens", 512, 512)),
        not_names=("total_output_tokens", "output_tokens_per_s", "max_output_tokens", "output_file"),
    ),
    Quantity(
        "request.cached", "request", "cached_tokens", "tokens",
        strong="cached token, cached prompt token, cache hit token, gpu hit token, prefix cached token, prefix cache hit token, prompt cache hit token, token cached, prefix hit token, cache read token, reused token, prefix cached, cache read prompt token",
        weak="cached, hit token",
        exact="cached_tokens, prefix_cached_tokens, num_cached_tokens, prompt_cached_tokens, cached_prompt_tokens, prompt_tokens_details.cached_tokens, input_tokens_details.cached_tokens",
        high=_MOST_TOKENS,
        samples=(("cached_tok", 16, 16), ("cache_read_input_tokens", 16, 16), ("prompt_tokens_details.cached_tokens", 16, 16)),
        not_names=("cache_size", "cached_pages"),
    ),
    Quantity(
        "request.limit", "request", "max_tokens", "tokens",
        strong="max token, max output token, max new token, token max, max token requested, max request token",
        exact="max_tokens, max_new_tokens, max_completion_tokens, max_output_tokens, gen_ai.request.max_tokens",
        high=_MOST_TOKENS,
        samples=(("max_tok", 1024, 1024), ("limit_tokens", 1024, 1024)),
        not_names=("max_num_batched_tokens", "max_model_len"),
    ),
    Quantity(
        "request.latency", "request", "latency_s", "seconds",
        strong="request latency, latency, e2e latency, e2e request latency, total latency, response time, e2e, e2e time, total time, request time total, latency total, wall time, time total, request took, latency e2e, total ms, total s, wall s, wall ms, wall latency, time taken, processing time, rt ms, e2el, runtime s, runtime ms, request time s, request time ms, request time total, output time, gateway total, gateway time, gateway latency, proxy total, proxy time, router total, router latency, ingress time",
        exact="latency, duration, elapsed, seconds, e2e_latency, response_time, request_latency, total_time, request_duration, total_latency, e2e_request_latency, gen_ai.latency.e2e=s, took",
        high=_LONGEST_S,
        samples=(("took_s", 8.1, 8.1), ("latency_ms", "8123", 8.123), ("duration", "1.2s", 1.2), ("elapsedMs", 900, 0.9), ("gateway_total_ms", "1122", 1.122)),
        not_names=("mean_latency_ms", "p99_latency", "queue_time"),
    ),
    Quantity(
        # a proxy's own name for what its server took: with a status it makes a request, which a bare duration does not
        "request.upstream", "request", "latency_s", "seconds",
        strong="upstream latency, upstream output time, upstream service time, upstream time, backend latency, backend output time",
        weak="upstream, backend",
        high=_LONGEST_S,
        samples=(("upstream_ms", 640, 0.64), ("upstream_response_time", "1.204", 1.204), ("backend_response_time_ms", 87, 0.087)),
        not_names=("upstream_host", "upstream_connect_time"),
    ),
    Quantity(
        "request.ttft", "request", "ttft_s", "seconds",
        strong="ttft, time to first token, first token, first token latency, first token time, time first token, first chunk, first chunk latency, time to first chunk, ttfb, prefill ms, prefill s, prefill time",
        exact="gen_ai.latency.time_to_first_token=s, first_byte_ms=ms, time_to_first_byte_ms=ms, first_byte_s=s, time_to_first_byte_s=s",
        high=_LONGEST_S,
        samples=(("ttft_ms", 118, 0.118), ("time_to_first_token_s", "0.5", 0.5)),
        not_names=("mean_ttft_ms", "p99_ttft_ms"),
    ),
    Quantity(
        "request.first", "request", "+first", "moment",
        strong="first token, first token at, first token time, first chunk at, time of first token",
        low=6.3e8,
        high=7.3e9,
        samples=(("first_token", "2026-11-20T20:04:51Z", 1795205091.0),),
        not_names=("first_seen", "first_name"),
    ),
    Quantity(
        "request.status", "request", "status", "status",
        strong="http status, status code, response code, http code, http status code, response status, http output status code, result code, return code http",
        weak="status, code, http, rc, result",
        exact="http_code",
        high=599,
        samples=(("http_code", "200", 200), ("status", 503, 503), ("response_code", "200 OK", 200)),
        not_names=("exit_code", "pod status"),
    ),
    Quantity(
        "request.model", "request", "model", "text",
        strong="served model, model served, served model name, request model",
        weak="model, model name, model id, llm, engine",
        exact="gen_ai.request.model, gen_ai.response.model",
        samples=(("model_name", "qwen3", "qwen3"),),
        not_names=("model_path_hash",),
    ),
    Quantity(
        "request.tenant", "request", "tenant", "text",
        strong="tenant, tenant id, customer, api key alias, team, team id",
        weak="user, user id, client, client id, app, caller, consumer, org, session, session id, conversation, conversation id, chat, chat id, thread id, agent, agent id, conv, sess, prefix id, prefix hash, prefix key, prefix name, document id, doc id, doc, document, file, prompt id, prompt key, prompt hash, template id, assistant, assistant id, bot, bot id, persona, persona id, book, book id, manual, manual id, handbook id, contract id, repo, repo id, repository, workspace, workspace id, notebook id, case id, matter id, ticket id, patient id, corpus id, image id, picture id, video id, document hash, document sha1, document sha256, document md5, document digest, content hash, content sha256, text hash, text sha256, prompt sha256, file hash, file sha256",
        samples=(("tenant", "helpdesk", "helpdesk"), ("session", "s07", "s07"), ("prefix_id", "p12", "p12"), ("doc", "d1", "d1"), ("assistant", "a085", "a085")),
        not_names=("user_agent", "prefix_tokens", "case_name"),
    ),
    Quantity(
        "request.replica", "request", "replica", "text",
        strong="replica id, backend id, upstream host, served by, routed to",
        weak="replica, backend, upstream, worker, worker id, server, instance, pod, gpu, gpu id, gpu index, device, worker index, dp rank, shard",
        samples=(("replica", "r3", "r3"), ("gpu", "5", "5"), ("gpu_index", "5", "5")),
        not_names=("gpu_util", "server_version"),
    ),
    Quantity(
        "request.end", "request", "+end", "moment",
        strong="end time, finish time, finished at, completed at, completion time, end ts",
        weak="end, finish, finished",
        low=6.3e8,
        high=7.3e9,
        samples=(("end_time", "2026-11-20T20:04:51Z", 1795205091.0),),
        not_names=("ended_by",),
    ),
)  # fmt: skip
