-- says: readings at which more of the KV pool was in use than all requests under way can hold, each as long as the engine allows; no row where there was none. Blocks of a prefix that nobody uses are free and do not count as used, so somebody else has them: requests that are gone, a connector
-- scope: incident
-- samples: such readings
-- kv_used: the share in use at the one that is furthest beyond, 0..1
-- most: the share that the requests of that reading can hold at most
-- under_way: requests that run or wait there
-- at_longest: the share that one request of the longest length takes
-- ref: where
WITH longest AS (
  SELECT least(1, coalesce(1 / nullif(max_concurrency, 0), max_model_len / nullif(kv_pool_tokens, 0))) AS share FROM engine
), reading AS (
  SELECT source, line, running + coalesce(waiting, 0) AS under_way, kv_used FROM seen.engine_stat f WHERE running IS NOT NULL AND kv_used IS NOT NULL
    -- blocks of prompts that the other side has no room for yet are that side's demand
    AND NOT EXISTS (FROM prefill_side p WHERE p.fetched_late AND p.source = f.source AND p.engine IS NOT DISTINCT FROM f.engine)
    -- a sheet may count what is kept for a prefix as well: where the engine's own log tells the usage, that is it
    AND (source IN (SELECT source FROM engine_start) OR NOT EXISTS (FROM seen.engine_stat s JOIN engine_start e USING (source) WHERE s.kv_used IS NOT NULL))
  UNION ALL
  SELECT source, min(line), sum(value) FILTER (name IN ('vllm:num_requests_running', 'vllm:num_requests_waiting')),
    max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'))
  FROM metric
  WHERE name IN ('vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')
    AND labels IS DISTINCT FROM 'delta'
  GROUP BY source, labels, t
  HAVING count(DISTINCT name) = 3
)
SELECT count(*) AS samples, max_by(kv_used, kv_used - under_way * share) AS kv_used, max_by(under_way * share, kv_used - under_way * share) AS most,
  max_by(under_way, kv_used - under_way * share)::BIGINT AS under_way, any_value(share) AS at_longest,
  max_by(source || ':' || line, kv_used - under_way * share) AS ref
FROM reading, longest
WHERE under_way > 0 AND kv_used >= $held_beyond * under_way * share AND kv_used - under_way * share >= $held_beyond_least
HAVING samples > 0
