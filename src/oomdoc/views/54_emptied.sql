-- says: a pool whose highest usage belongs to requests that ended: afterwards nothing ran and it was empty; no row where nobody looked behind the peak, or it was low
-- scope: bundle
-- peak: highest usage, 0..1
-- running: the most requests that ran in that record
-- waiting: the most that waited
-- tokens: tokens that were read and generated over the record, by its counters; NULL = not counted
-- pool_tokens: tokens that the pool stores; NULL = not told
-- explained: these tokens are as many as the pool held at its peak, to a tenth: the requests are what it held
-- ref: where it is empty again
WITH point AS (
  -- in the order in which they were read: a line may hold several
  SELECT source, line, row_number() OVER () AS place, running, waiting, kv_used
  FROM engine_stat
  WHERE kv_used IS NOT NULL
    -- where no line is full, or none is empty, there is no row
    AND EXISTS (FROM engine_stat WHERE kv_used >= $emptied_from) AND EXISTS (FROM engine_stat WHERE running = 0 AND kv_used <= $emptied_to)
), top AS (
  SELECT source, max(kv_used) AS peak, arg_max(place, kv_used) AS place, max(running) AS running, max(waiting) AS waiting
  FROM point
  GROUP BY source
  HAVING max(kv_used) >= $emptied_from
), behind AS (
  SELECT t.source, any_value(t.peak) AS peak, max(p.running) AS running_behind, min(p.kv_used) AS low, any_value(t.running) AS running,
    any_value(t.waiting) AS waiting, t.source || ':' || arg_min(p.line, p.place) FILTER (p.running = 0 AND p.kv_used <= $emptied_to) AS ref
  FROM top t JOIN point p ON p.source = t.source AND p.place > t.place GROUP BY t.source
), counter AS (
  SELECT sum(grown) AS tokens FROM (
    SELECT CASE WHEN labels = 'delta' THEN sum(value) ELSE max(value) - min(value) END AS grown
    FROM metric
    WHERE name IN ('vllm:generation_tokens_total', 'vllm:prompt_tokens_total')
    GROUP BY name, source, labels
    HAVING labels = 'delta' OR count(*) > 1)
), pool AS (
  SELECT max(value) AS tokens FROM engine_figure WHERE name = 'kv_pool_tokens'
)
SELECT peak, running, coalesce(waiting, 0) AS waiting, counter.tokens::BIGINT AS tokens, pool.tokens::BIGINT AS pool_tokens,
  coalesce(abs(counter.tokens / pool.tokens - peak) <= $emptied_explained * peak, false) AS explained, ref
FROM behind, counter, pool WHERE ref IS NOT NULL ORDER BY peak DESC, source LIMIT 1
