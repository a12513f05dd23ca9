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
    ),
    Quantity(
        "request.cached", "request", "cached_tokens", "tokens",
        strong="cached token, cached prompt token, cache hit token, gpu hit token, prefix cached token, prefix cache hit token, prompt cache hit token, token cached, prefix hit token, cache read token, reused token, prefix cached, cache read prompt token",
        weak="cached, hit token",
        exact="cached_tokens, prefix_cached_tokens, num_cached_tokens, prompt_cached_tokens, cached_prompt_tokens, prompt_tokens_details.cached_tokens, input_tokens_details.cached_tokens",
        high=_MOST_TOKENS,
    ),
    Quantity(
        "request.limit", "request", "max_tokens", "tokens",
        strong="max token, max output token, max new token, token max, max token requested, max request token",
        exact="max_tokens, max_new_tokens, max_completion_tokens, max_output_tokens, gen_ai.request.max_tokens",
        high=_MOST_TOKENS,
    ),
    Quantity(
        "request.latency", "request", "latency_s", "seconds",
        strong="request latency, latency, e2e latency, e2e request latency, total latency, response time, e2e, e2e time, total time, request time total, latency total, wall time, time total, request took, latency e2e, total ms, total s, wall s, wall ms, wall latency, time taken, processing time, rt ms, e2el, runtime s, runtime ms, request time s, request time ms, request time total, output time, gateway total, gateway time, gateway latency, proxy total, proxy time, router total, router latency, ingress time",
        exact="latency, duration, elapsed, seconds, e2e_latency, response_time, request_latency, total_time, request_duration, total_latency, e2e_request_latency, gen_ai.latency.e2e=s, took, request_time=s",
        high=_LONGEST_S,
    ),
    Quantity(
        # a proxy's own name for what its server took: with a status it makes a request, which a bare duration does not
        "request.upstream", "request", "latency_s", "seconds",
        strong="upstream latency, upstream output time, upstream service time, upstream time, backend latency, backend output time",
        weak="upstream, backend",
        high=_LONGEST_S,
    ),
    Quantity(
        "request.ttft", "request", "ttft_s", "seconds",
        strong="ttft, time to first token, first token, first token latency, first token time, time first token, first chunk, first chunk latency, time to first chunk, ttfb, prefill ms, prefill s, prefill time",
        exact="gen_ai.latency.time_to_first_token=s, first_byte_ms=ms, time_to_first_byte_ms=ms, first_byte_s=s, time_to_first_byte_s=s",
        high=_LONGEST_S,
    ),
    Quantity(
        "request.first", "request", "+first", "moment",
        strong="first token, first token at, first token time, first chunk at, time of first token",
        low=6.3e8,
        high=7.3e9,
    ),
    Quantity(
        "request.status", "request", "status", "status",
        strong="http status, status code, response code, http code, http status code, response status, http output status code, result code, return code http",
        weak="status, code, http, rc, result",
        exact="http_code",
        high=599,
    ),
    Quantity(
        "request.model", "request", "model", "text",
        strong="served model, model served, served model name, request model",
        weak="model, model name, model id, llm, engine",
        exact="gen_ai.request.model, gen_ai.response.model",
    ),
    Quantity(
        "request.tenant", "request", "tenant", "text",
        strong="tenant, tenant id, customer, api key alias, team, team id",
        weak="user, user id, client, client id, app, caller, consumer, org, session, session id, conversation, conversation id, chat, chat id, thread id, agent, agent id, conv, sess, prefix id, prefix hash, prefix key, prefix name, document id, doc id, doc, document, file, prompt id, prompt key, prompt hash, template id, assistant, assistant id, bot, bot id, persona, persona id, book, book id, manual, manual id, handbook id, contract id, repo, repo id, repository, workspace, workspace id, notebook id, case id, matter id, ticket id, patient id, corpus id, image id, picture id, video id, document hash, document sha1, document sha256, document md5, document digest, content hash, content sha256, text hash, text sha256, prompt sha256, file hash, file sha256",
    ),
    Quantity(
        "request.replica", "request", "replica", "text",
        strong="replica id, backend id, upstream host, served by, routed to",
        weak="replica, backend, upstream, worker, worker id, server, instance, pod, gpu, gpu id, gpu index, device, worker index, dp rank, shard",
    ),
    Quantity(
        "request.end", "request", "+end", "moment",
        strong="end time, finish time, finished at, completed at, completion time, end ts",
        weak="end, finish, finished",
        low=6.3e8,
        high=7.3e9,
    ),
)  # fmt: skip
