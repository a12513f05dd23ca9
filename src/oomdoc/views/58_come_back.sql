-- says: those who come back with what they asked before (sessions, tenants): after how long, how much they are together, and how long the cache keeps what nobody uses; no row where requests do not tell who asks, when, and what was cached
-- scope: bundle
-- who: how many come back
-- returns: requests of somebody who had asked before
-- gap_s: median seconds between two requests of one of them
-- set_tokens: the last prompts of all of them together, tokens
-- pool_tokens: what the pool stores; NULL = not told
-- own_share: of prompts that repeat the one before, the share found in the cache beyond the beginning that all share, median
-- evicted_idle_s: mean seconds that a block lay idle before it was evicted; NULL = not told
-- too_late: they come back after what is idle was evicted
-- too_many: together they are more than the pool stores
-- ref: the first return
WITH asked AS (
  SELECT source, line, tenant, coalesce(t, elapsed_s) AS moment, input_tokens, cached_tokens,
    min(cached_tokens) OVER (PARTITION BY source) AS shared, lag(coalesce(t, elapsed_s)) OVER w AS last, lag(input_tokens) OVER w AS before,
    row_number() OVER (PARTITION BY source, tenant ORDER BY coalesce(t, elapsed_s) DESC, line DESC) AS nth
  FROM request
  WHERE tenant IS NOT NULL AND coalesce(t, elapsed_s) IS NOT NULL AND input_tokens > 0 AND cached_tokens IS NOT NULL
  WINDOW w AS (PARTITION BY source, tenant ORDER BY coalesce(t, elapsed_s), line)
), folded AS (
  SELECT source, count(DISTINCT tenant) FILTER (again) AS who, count(*) FILTER (again) AS returns,
    median(moment - last) FILTER (again) AS gap_s, sum(input_tokens) FILTER (nth = 1) AS set_tokens,
         median((cached_tokens - shared) / nullif(input_tokens - shared, 0)) FILTER (again) AS own_share,
           source || ':' || min(line) FILTER (again) AS ref
  FROM (SELECT *, input_tokens BETWEEN before AND $turn_growth * before AS again FROM asked) GROUP BY source
)
SELECT f.who, f.returns, f.gap_s, f.set_tokens::BIGINT AS set_tokens, p.pool_tokens, f.own_share, i.evicted_idle_s,
  f.gap_s > i.evicted_idle_s AS too_late, f.set_tokens > p.pool_tokens AS too_many, f.ref
FROM folded f, (SELECT max(value)::BIGINT AS pool_tokens FROM engine_figure WHERE name = 'kv_pool_tokens') p,
  (
    SELECT max(value) FILTER (name LIKE '%_sum') / nullif(max(value) FILTER (name LIKE '%_count'), 0) AS evicted_idle_s
    FROM metric
    WHERE name LIKE 'vllm:kv_block_idle_before_evict_seconds_%'
  ) i
WHERE f.returns >= $returns_least AND f.who >= $returners_least ORDER BY f.returns DESC LIMIT 1
