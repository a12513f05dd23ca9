-- says: those who come back with what they asked before (sessions, tenants, documents): after how long, how much they are together, and how long the cache keeps what nobody uses; no row where requests do not tell who asks and what was cached
-- scope: incident
-- who: how many come back
-- returns: requests of somebody who had asked before
-- gap_s: median seconds between two requests of one of them; NULL = the requests have no times and stand in their order
-- set_tokens: the last prompts of all of them together, the beginning that all share counted once
-- pool_tokens: what the pool stores; NULL = not told
-- own_share: of prompts that repeat the one before, the share found in the cache beyond the beginning that all share, median
-- evicted_idle_s: mean seconds that a block lay idle before it was evicted; NULL = not told
-- too_late: they come back after what is idle was evicted
-- too_many: together they are more than the pool stores
-- ref: the first return
WITH told AS (
  SELECT source, line, tenant, coalesce(t, elapsed_s) AS moment, input_tokens, cached_tokens,
    count(coalesce(t, elapsed_s)) OVER (PARTITION BY source) > 0 AS timed
  FROM request
  WHERE tenant IS NOT NULL AND input_tokens > 0 AND cached_tokens IS NOT NULL
), asked AS (
  -- a sheet without times lists them in their order
  SELECT source, line, tenant, moment, input_tokens, cached_tokens, lag(moment) OVER w AS last, lag(input_tokens) OVER w AS before,
    row_number() OVER w = 1 AS new, row_number() OVER (PARTITION BY source ORDER BY moment, line) = 1 AS first,
    row_number() OVER (PARTITION BY source, tenant ORDER BY moment DESC, line DESC) AS nth
  FROM told
  WHERE moment IS NOT NULL OR NOT timed
  WINDOW w AS (PARTITION BY source, tenant ORDER BY moment, line)
), begun AS (
  -- what every prompt finds is the beginning that all share, and so is what a new one finds that is not the first; who finds most found it from another time
  SELECT source, max(cached) FILTER (cached <= $turn_warm * size) AS shared FROM (
    SELECT source, unnest([0, min(cached_tokens), median(cached_tokens) FILTER (new AND NOT first)]) AS cached, median(input_tokens) AS size
    FROM asked
    GROUP BY source)
  GROUP BY source
), folded AS (
  SELECT source, count(DISTINCT tenant) FILTER (again) AS who, count(*) FILTER (again) AS returns,
    count(*) FILTER (input_tokens = before) AS same,
    median(moment - last) FILTER (again) AS gap_s, sum(greatest(input_tokens - shared, 0)) FILTER (nth = 1) + any_value(shared) AS set_tokens,
         median(greatest(cached_tokens - shared, 0) / CASE WHEN input_tokens > shared THEN input_tokens - shared END) FILTER (again) AS own_share,
           source || ':' || min(line) FILTER (again) AS ref
  FROM (SELECT *, input_tokens BETWEEN $turn_shrink * before AND $turn_growth * before AS again FROM asked JOIN begun USING (source)) GROUP BY source
)
SELECT f.who, f.returns, f.gap_s, f.set_tokens::BIGINT AS set_tokens, p.pool_tokens, f.own_share, i.evicted_idle_s,
  CASE WHEN f.returns >= $returns_least THEN f.gap_s > i.evicted_idle_s END AS too_late, f.set_tokens > p.pool_tokens AS too_many, f.ref
FROM folded f, (SELECT kv_pool_tokens AS pool_tokens FROM engine) p,
  (
    SELECT max(value) FILTER (name LIKE '%_sum') / nullif(max(value) FILTER (name LIKE '%_count'), 0) AS evicted_idle_s
    FROM metric
    WHERE name LIKE 'vllm:kv_block_idle_before_evict_seconds_%'
  ) i
-- a prompt of the very same length is the same prompt: of those fewer tell
WHERE (f.returns >= $returns_least OR f.same >= $turns_least) AND f.who >= $returners_least ORDER BY f.returns DESC LIMIT 1
