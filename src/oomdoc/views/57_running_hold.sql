-- says: what running requests hold together, from their first token to their end, while others have waited long for theirs, against the pool; no row where requests are not told with both times, or none waits
-- scope: incident
-- requests: requests with both times
-- waited: moments at which somebody had waited long
-- tokens: prompt + half of the answer, which grows from nothing, of those that run at such moments, median; of those at which all under way are known, if it is more there
-- peak_tokens: the most of it
-- running: how many run at such moments, median
-- running_max: the most that ever ran together
-- pool_tokens: what the pool stores
-- fills: at such moments the pool is as full as whole prompts fill it, and never fuller than it is large
-- roomy: at such moments most of it is free, even if all held blocks of whom nobody tells when a first token came
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
), cut AS (
  -- who was cut off before the caller saw a token may have run for long: an engine is not told, or answers at once and as a whole
  SELECT coalesce(t, elapsed_s) AS a, coalesce(t, elapsed_s) + latency_s AS c, input_tokens AS tokens
  FROM timed
  WHERE ttft_s IS NULL AND latency_s >= $timer_least_s AND (status = 0 OR status >= 400) AND input_tokens > 0 AND EXISTS (FROM asked)
), event AS (
  SELECT b AS moment, tokens, 1 AS runs, 0 AS waits, 0 AS unknown FROM asked UNION ALL SELECT c, -tokens, -1, 0, 0 FROM asked
  UNION ALL SELECT a + $waited_s, 0, 0, 1, 0 FROM asked WHERE late UNION ALL SELECT b, 0, 0, -1, 0 FROM asked WHERE late
  UNION ALL SELECT a, 0, 0, 0, tokens FROM cut UNION ALL SELECT c, 0, 0, 0, -tokens FROM cut
), summed AS (
  SELECT moment, sum(sum(tokens)) OVER w AS held, sum(sum(runs)) OVER w AS running, sum(sum(waits)) OVER w AS waiting,
    sum(sum(unknown)) OVER w AS unknown
  FROM event
  GROUP BY moment
  WINDOW w AS (ORDER BY moment)
), folded AS (
  SELECT count(*) FILTER (waiting > 0) AS waited, median(held) FILTER (waiting > 0) AS held, median(running) FILTER (waiting > 0) AS run,
    count(*) FILTER (waiting > 0 AND unknown = 0) AS known, median(held) FILTER (waiting > 0 AND unknown = 0) AS known_held,
    median(running) FILTER (waiting > 0 AND unknown = 0) AS known_run, median(held + unknown) FILTER (waiting > 0) AS most,
    quantile_cont(held, $hold_usual) FILTER (waiting > 0) AS usual_most, max(held) AS peak_tokens, max(running) AS running_max
  FROM summed
), chosen AS (
  SELECT *, known >= $hold_moments AND known_held > held AS clear, CASE WHEN clear THEN known_held ELSE held END AS tokens,
    CASE WHEN clear THEN known_run ELSE run END AS running
  FROM folded
)
SELECT (SELECT count(*) FROM asked) AS requests, waited, f.tokens::BIGINT AS tokens, peak_tokens::BIGINT AS peak_tokens, running,
  running_max, e.kv_pool_tokens AS pool_tokens,
  f.tokens >= $hold_full * e.kv_pool_tokens AND usual_most <= $hold_most * e.kv_pool_tokens AS fills,
  most <= $hold_roomy * e.kv_pool_tokens AS roomy, fills AND coalesce((SELECT waiting_max FROM kv_pressure), 0) = 0 AS elsewhere,
  (SELECT arg_min(source || ':' || line, a) FROM asked WHERE late) AS ref
FROM chosen f, engine e
WHERE waited >= $hold_moments AND e.kv_pool_tokens > 0 AND EXISTS (FROM request WHERE ttft_s > $waited_s)
