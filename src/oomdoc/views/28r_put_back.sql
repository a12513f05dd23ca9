-- says: a request that filled the pool alone, was put back to wait or swapped out, and never came in again; no row where the series does not end so
-- scope: incident
-- kv_used: share of the pool that it held when it last ran
-- pool_tokens: tokens that the pool stores; NULL = not told
-- samples: statistics lines from then on, in all of which nobody runs, and somebody waits or stays swapped out
-- ran_ref: where it last ran
-- ref: the last line
WITH ran AS (
  SELECT source, engine, max(line) AS line FROM seen.engine_stat WHERE running > 0 GROUP BY ALL
), behind AS (
  SELECT r.source, r.engine, r.line, count(*) AS samples, max(s.line) AS last_line, bool_and(coalesce(s.swapped > 0, false)) AS swapped
  FROM ran r
  JOIN seen.engine_stat s ON s.source = r.source AND s.engine IS NOT DISTINCT FROM r.engine AND s.line > r.line AND s.running IS NOT NULL
  GROUP BY ALL
  HAVING (bool_and(s.waiting > 0) OR bool_and(s.swapped > 0)) AND count(*) >= $idle_samples
)
SELECT s.kv_used, e.kv_pool_tokens AS pool_tokens, b.samples, s.source || ':' || s.line AS ran_ref, s.source || ':' || b.last_line AS ref
FROM behind b
JOIN seen.engine_stat s ON s.source = b.source AND s.engine IS NOT DISTINCT FROM b.engine AND s.line = b.line
JOIN engine e ON true
WHERE s.running = 1
  -- of one that is swapped out it is told that it had to make room; how full the pool was stands in a line some seconds before
  AND ((coalesce(s.waiting, 0) = 0 AND s.kv_used >= $pool_pinned) OR (b.swapped AND s.kv_used >= $pool_crowded))
ORDER BY b.samples DESC, s.source LIMIT 1
