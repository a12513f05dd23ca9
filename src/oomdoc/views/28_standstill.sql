-- says: the end of a series of scrapes or readings in which work is in hand and nothing is done any more; no row where the last of them moved, or none counts
-- scope: incident
-- running: least number of requests in hand over that stretch
-- minutes: how long it lasts
-- readings: how many readings it has
-- counter: what does not move
-- value: where it stands
-- since_ref: the first reading of the stretch
-- ref: the last
WITH counted AS (
  SELECT source, t, name, sum(value) AS value, min(line) AS line FROM metric
  WHERE labels IS DISTINCT FROM 'delta'
    AND name IN ('vllm:generation_tokens_total', 'vllm:iteration_tokens_total_count', 'vllm:request_success_total')
  GROUP BY ALL
), held AS (
  SELECT source, t, max(running) AS running FROM (
    -- who waits is in hand as well: a head of the queue that nobody can admit holds all behind it
    SELECT source, t, sum(value) AS running FROM metric WHERE name IN ('vllm:num_requests_running', 'vllm:num_requests_waiting') GROUP BY ALL
    UNION ALL SELECT source, t, running + coalesce(waiting, 0) FROM seen.engine_stat) GROUP BY ALL
), reading AS (
  SELECT c.source, c.t, c.name, c.value, c.line, h.running,
    last_value(c.value) OVER (PARTITION BY c.source, c.name ORDER BY c.t ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last
  FROM counted c JOIN held h ON h.source = c.source AND h.t = c.t
), moved AS (
  -- until when it moved, and how fast; -infinity where it never did
  SELECT source, name, coalesce(max(t) FILTER (value <> last), '-Infinity'::DOUBLE) AS until_t,
         (max(value) - min(value)) / nullif(max(t) FILTER (value <> last) - min(t), 0) AS per_s FROM reading GROUP BY ALL
), still AS (
  SELECT r.source, r.name, min(r.running) AS running, (max(r.t) - min(r.t)) AS seconds, count(*) AS readings, any_value(r.last) AS value,
         min_by(r.source || ':' || r.line, r.t) AS since_ref, max_by(r.source || ':' || r.line, r.t) AS ref, any_value(m.per_s) AS per_s
  FROM reading r JOIN moved m ON m.source = r.source AND m.name = r.name WHERE r.t > m.until_t GROUP BY ALL
)
-- a request may run long and end nothing meanwhile: requests count only where the rate before would have ended many
SELECT running, seconds / 60 AS minutes, readings, name AS counter, value, since_ref, ref FROM still s
WHERE seconds >= $standstill_s AND running > 0
  AND (
    name <> 'vllm:request_success_total'
      OR (per_s * seconds >= $standstill_requests AND NOT EXISTS (FROM counted c WHERE c.source = s.source AND c.name <> s.name))
  )
ORDER BY seconds DESC, source, name LIMIT 1
