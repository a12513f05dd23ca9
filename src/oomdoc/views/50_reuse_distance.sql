-- says: prompts that come again, by what was computed between their turns: whether those that came soon were found in the cache and those that came late were not; no row where nobody says whose prompts come again
-- scope: incident
-- found: turns that found at least half of what they could
-- lost: turns that found next to nothing of it, although it was found at another time, or as much of others' is
-- found_tokens: prompt tokens that others brought into the cache of the same server before a turn that was found: nine of ten had no more
-- lost_tokens: the same before those that were lost: nine of ten had no fewer
-- evicted: the two are apart, a good part was lost, and what came in between does not fit into the pool beside it, where the pool is told: it was pushed out
-- lost_ttft_s: median time to the first token of those that were lost; NULL = not told
-- found_ttft_s: of the others
-- ref: where the first of them stands
WITH sheet AS (
  -- nobody tells what was cached, and seldom two wait for their first token at a time: only there a time tells what was computed
  SELECT source
  FROM request
  GROUP BY source
  HAVING count(cached_tokens) = 0 AND sum(ttft_s) <= max(coalesce(t, elapsed_s)) - min(coalesce(t, elapsed_s))
), lone AS (
  -- who comes after all before it got their first token waits for its own prompt only
  SELECT source, coalesce(replica, '') AS server, tenant, line, t, input_tokens AS size, ttft_s, coalesce(t, elapsed_s) AS at_s,
    at_s >= coalesce(max(at_s + ttft_s) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), at_s) AS alone,
    row_number() OVER (PARTITION BY source, server, tenant ORDER BY at_s, line) = 1 AS first
  FROM request
  JOIN sheet USING (source)
  WINDOW w AS (PARTITION BY source, coalesce(replica, '') ORDER BY coalesce(t, elapsed_s), line)
), pace AS (
  -- nobody's first prompt is cached: what a token of it takes, where that is one figure
  SELECT source, server, median(ttft_s / size) AS token_s
  FROM lone
  WHERE alone AND first AND size >= $turn_tokens
  GROUP BY source, server
  HAVING count(*) >= $pace_least AND max(ttft_s / size) <= $pace_even * min(ttft_s / size)
), known AS (
  SELECT source, coalesce(replica, '') AS server, tenant, line, t, input_tokens AS size, ttft_s, least(cached_tokens, input_tokens) AS cached
  FROM request
  WHERE cached_tokens IS NOT NULL
  UNION ALL
  SELECT source, server, tenant, line, t, size, ttft_s, size - least(ttft_s / token_s, size)
  FROM lone
  JOIN pace USING (source, server)
  WHERE alone AND ttft_s IS NOT NULL
), asked AS (
  -- only what is computed is new in the cache: a sum over the requests of one server, in their order
  SELECT source, server, tenant, line, size, ttft_s, cached, sum(size - cached) OVER w AS stored, row_number() OVER w AS nth
  FROM known
  WHERE size >= $turn_tokens
  WINDOW w AS (PARTITION BY source, server ORDER BY t, line)
), again AS (
  SELECT *, lag(size) OVER w AS before, stored - (size - cached) - lag(stored) OVER w AS others,
    max(cached) OVER (PARTITION BY source, tenant) AS best
  FROM asked WHERE tenant IS NOT NULL WINDOW w AS (PARTITION BY source, server, tenant ORDER BY nth)
), kept AS (
  -- whose prompt was never found where the others' are has as much to find as they
  SELECT * REPLACE (CASE WHEN best >= $turn_tokens THEN best ELSE median(CASE WHEN best >= $turn_tokens THEN best END) OVER (PARTITION BY source) END AS best)
  FROM again
), turn_of AS (
  SELECT *, cached >= $turn_warm * least(best, before) AS found, cached < $turn_cold * least(best, before) AS lost
  FROM kept WHERE best >= $turn_tokens AND size BETWEEN before / $turn_growth AND $turn_growth * before
), told AS (
  SELECT count(*) FILTER (found) AS found, count(*) FILTER (lost) AS lost, quantile_cont(others, 0.9) FILTER (found) AS found_tokens,
    quantile_cont(others, 0.1) FILTER (lost) AS lost_tokens,
         median(others + size) FILTER (lost) AS needed_tokens, median(size) FILTER (lost) AS size_tokens,
         median(ttft_s) FILTER (lost) AS lost_ttft_s, median(ttft_s) FILTER (found) AS found_ttft_s,
           arg_min(source || ':' || line, line) FILTER (lost) AS ref
  FROM turn_of
  GROUP BY source
  HAVING count(*) FILTER (found) > 0 AND count(*) FILTER (lost) > 0
  ORDER BY count(*) FILTER (lost) / count(*) DESC, source
  LIMIT 1
)
SELECT found, lost, found_tokens, lost_tokens,
  found >= $reuse_least AND lost >= $reuse_least AND lost >= $reuse_lost * (found + lost) AND lost_tokens >= CASE WHEN least(found, lost) >= $turns_least THEN 1 ELSE $reuse_apart END * found_tokens
    AND lost_tokens >= size_tokens
    AND coalesce(needed_tokens >= $reuse_pool * (SELECT kv_pool_tokens FROM engine), true) AS evicted,
      lost_ttft_s, found_ttft_s, ref
FROM told
