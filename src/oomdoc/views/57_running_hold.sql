-- says: what running requests hold together, from their first token to their end, while others have waited long for theirs, against the pool; no row where requests are not told with both times, or none waits
-- scope: incident
-- requests: requests with both times
-- waited: moments at which somebody had waited long
-- tokens: prompt + half of the answer, which grows from nothing, of those that run at such moments, median
-- peak_tokens: the most of it
-- running: how many run at such moments, median
-- running_max: the most that ever ran together
-- pool_tokens: what the pool stores
-- fills: at such moments the pool is as full as whole prompts fill it, and never fuller than it is large
-- roomy: at such moments most of it is free
-- elsewhere: it fills, and in no reading of the pool does anybody wait: those readings are of other hours than these requests
-- ref: the first request that waited long
WITH timed AS NOT MATERIALIZED (
  SELECT *, ttft_s > $waited_s AS late FROM request
), asked AS (
  SELECT source, line, coalesce(t, elapsed_s) AS a, coalesce(t, elapsed_s) + ttft_s AS b, coalesce(t, elapsed_s) + latency_s AS c,
    input_tokens + coalesce(output_tokens, 0) // 2 AS tokens, late
  FROM timed WHERE coalesce(t, elapsed_s) IS NOT NULL AND latency_s >= ttft_s AND input_tokens > 0
    -- where nobody waited long, or no pool is told, there is no row: to add up a million requests for that costs 3 s
    AND EXISTS (FROM timed WHERE late) AND EXISTS (FROM engine WHERE kv_pool_tokens > 0)
), event AS (
  SELECT b AS moment, tokens, 1 AS runs, 0 AS waits FROM asked UNION ALL SELECT c, -tokens, -1, 0 FROM asked
  UNION ALL SELECT a + $waited_s, 0, 0, 1 FROM asked WHERE late UNION ALL SELECT b, 0, 0, -1 FROM asked WHERE late
), summed AS (
  SELECT moment, sum(sum(tokens)) OVER w AS held, sum(sum(runs)) OVER w AS running, sum(sum(waits)) OVER w AS waiting
  FROM event
  GROUP BY moment
  WINDOW w AS (ORDER BY moment)
), folded AS (
  SELECT count(*) FILTER (waiting > 0) AS waited, median(held) FILTER (waiting > 0) AS tokens, max(held) AS peak_tokens,
    median(running) FILTER (waiting > 0) AS running, max(running) AS running_max
  FROM summed
)
SELECT (SELECT count(*) FROM asked) AS requests, waited, f.tokens::BIGINT AS tokens, peak_tokens::BIGINT AS peak_tokens, running,
  running_max, e.kv_pool_tokens AS pool_tokens,
  f.tokens >= $hold_full * e.kv_pool_tokens AND peak_tokens <= $hold_most * e.kv_pool_tokens AS fills,
  f.tokens <= $hold_roomy * e.kv_pool_tokens AS roomy, fills AND coalesce((SELECT waiting_max FROM kv_pressure), 0) = 0 AS elsewhere,
  (SELECT arg_min(source || ':' || line, a) FROM asked WHERE late) AS ref
FROM folded f, engine e
WHERE waited >= $hold_moments AND e.kv_pool_tokens > 0 AND EXISTS (FROM request WHERE ttft_s > $waited_s)
