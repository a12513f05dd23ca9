-- says: blocks of the KV pool in use while nothing runs and nothing waits, from statistics lines and scrapes; no row where that was never seen, or where most readings of the idle engine since then find the pool empty: what nobody holds does not come back. An engine that takes in prompts is at work, though nothing runs at the moment of the line
-- scope: bundle
-- samples: readings of an idle engine with more than a remnant in use
-- servers: how many engines show it
-- kv_used: the highest share of the pool held so, 0..1
-- unchanged: readings of one engine in which the same share is held as in its reading before, to a ten-thousandth
-- ref: where most is held
WITH held AS (
  SELECT source || coalesce(engine, 0) AS whose, source, line, t, kv_used
  FROM engine_stat
  WHERE running = 0 AND coalesce(waiting, 0) = 0 AND coalesce(generation_tokens_per_s, 0) < $idle_rate
    -- what a prefill side holds waits to be fetched; a line of a batch that brings prompts in counts what ran before it
    AND coalesce(prompt_tokens_per_s, 0) < $idle_rate
      AND NOT EXISTS (FROM cache_lookup c WHERE c.source = engine_stat.source AND c.line = engine_stat.line)
      AND NOT EXISTS (FROM prefill_side p WHERE p.source = engine_stat.source AND p.engine IS NOT DISTINCT FROM engine_stat.engine)
  UNION ALL
  SELECT k.source || coalesce(k.labels, ''), k.source, k.line, k.t, k.value FROM metric k
  WHERE k.name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc') AND k.value BETWEEN 0 AND 1 AND (
    SELECT count(DISTINCT m.name) = 2 AND max(m.value) = 0 FROM metric m
    WHERE m.source = k.source AND m.labels IS NOT DISTINCT FROM k.labels AND m.t IS NOT DISTINCT FROM k.t
      AND abs(m.line::BIGINT - k.line::BIGINT) <= $one_scrape_lines AND m.name IN ('vllm:num_requests_running', 'vllm:num_requests_waiting')
      AND NOT EXISTS (
        FROM metric n
        WHERE n.source = k.source AND n.name = m.name AND n.labels IS NOT DISTINCT FROM k.labels AND n.t IS NOT DISTINCT FROM k.t
          AND abs(n.line::BIGINT - k.line::BIGINT) < abs(m.line::BIGINT - k.line::BIGINT)
      ))
), told AS (
  SELECT *,
    kv_used = any_value(kv_used) OVER (
      PARTITION BY whose, round(kv_used, 4) ORDER BY t, line ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
    ) AS same
  FROM (SELECT *, avg((kv_used > $held_at_idle)::INT) OVER (PARTITION BY whose ORDER BY t, line ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS share FROM held)
  WHERE kv_used > $held_at_idle
  QUALIFY arg_min(share, line) OVER (PARTITION BY whose) >= $mostly_held
)
SELECT count(*) AS samples, count(DISTINCT whose) AS servers, max(kv_used) AS kv_used, count(*) FILTER (same) AS unchanged,
  arg_max(source || ':' || line, kv_used) AS ref
FROM told HAVING count(*) > 0
