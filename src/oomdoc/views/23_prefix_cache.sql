-- says: what the prefix cache gave, from metrics and the log; no row where nobody says
-- scope: incident
-- queries: tokens (old versions: blocks) that were looked up
-- hits: of them found
-- hit_rate: hits / queries, else the last rate of the log
-- ref: where
-- evicted_idle_s: mean idle time of a block before eviction
-- reuses: how often a cached block was used again (sampled)
-- evictions: blocks evicted (sampled)
-- repeated: a text states that the same prefixes come again
-- no_hits: a text states that they were not hit
WITH counter AS (
  SELECT sum(value) FILTER (name IN ('vllm:prefix_cache_queries_total', 'vllm:gpu_prefix_cache_queries_total')) AS queries,
         sum(value) FILTER (name IN ('vllm:prefix_cache_hits_total', 'vllm:gpu_prefix_cache_hits_total')) AS hits,
         sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_sum') / nullif(sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_count'), 0) AS evicted_idle_s,
         sum(value) FILTER (name = 'vllm:kv_block_reuse_gap_seconds_count') AS reuses,
         sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_count') AS evictions,
         min(ref) FILTER (name LIKE '%prefix_cache%') AS ref
  FROM (SELECT name, labels, max(value) AS value, max_by(source || ':' || line, coalesce(t, 0)) AS ref FROM metric WHERE name LIKE '%prefix_cache%' OR name LIKE 'vllm:kv_block%' GROUP BY ALL)
), told AS (
  SELECT bool_or(topic = 'repeated-prefix') AS repeated, bool_or(topic = 'no-hits') AS no_hits, min(source || ':' || line) FILTER (topic IN ('repeated-prefix', 'no-hits')) AS ref FROM note
), said AS (
  SELECT arg_max(prefix_hit_rate, line) AS rate, arg_max(source || ':' || line, line) AS ref FROM seen.engine_stat WHERE prefix_hit_rate IS NOT NULL
)
SELECT queries, hits, coalesce(hits / nullif(queries, 0), said.rate) AS hit_rate, coalesce(counter.ref, told.ref, said.ref) AS ref, evicted_idle_s, reuses, evictions,
       coalesce(repeated, false) AS repeated, coalesce(no_hits, false) AS no_hits
FROM counter, told, said
WHERE queries IS NOT NULL OR said.rate IS NOT NULL OR repeated OR no_hits
