-- says: the outcome that the incident in focus has to explain; one row, without an outcome where the bundle shows none
-- scope: incident
-- outcome: as in `outcome`; NULL = not told
-- ref: the line that shows it
WITH own AS (
  SELECT o.outcome, o.ref, i.start_id FROM focus f JOIN incident i ON i.incident = f.incident LEFT JOIN outcome o ON o.start_id = i.start_id
), worst AS (
  -- without an incident the gravest of its lives speaks
  SELECT outcome, ref FROM outcome ORDER BY list_position(['refused', 'died', 'ended', 'stuck', 'degraded', 'grew', 'starting', 'not-told', 'served'], outcome), start_id LIMIT 1
), gauge AS (
  -- without a log the counters of the server speak: requests were finished, nobody waits, nothing was preempted
  SELECT max(value) FILTER (name LIKE 'vllm:request_success%') AS done, max(value) FILTER (name = 'vllm:num_requests_waiting') AS waiting,
         max(value) FILTER (name LIKE 'vllm:num_preemptions%') AS preempted, max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')) AS kv_used,
         min(source || ':' || line) FILTER (name LIKE 'vllm:request_success%') AS ref
  FROM metric WHERE name LIKE 'vllm:%'
), quiet AS (
  SELECT CASE WHEN preempted > 0 OR (waiting > 0 AND kv_used >= 0.85) THEN 'degraded' WHEN done > 0 AND coalesce(waiting, 0) = 0 THEN 'served' END AS outcome, ref FROM gauge
), box AS (
  -- or its container: it runs, is ready or not told otherwise, and was never started again; or it was ended or evicted
  SELECT CASE WHEN bool_or(coalesce(last_reason, reason) IN ('OOMKilled', 'Error', 'Evicted') AND coalesce(exit_code, -1) NOT IN (0, 143)) THEN 'ended' WHEN count(*) > 0 AND bool_and(state = 'Running' AND restarts = 0) THEN 'served' END AS outcome,
         coalesce(min(source || ':' || line) FILTER (coalesce(last_reason, reason) IN ('OOMKilled', 'Error', 'Evicted')), min(source || ':' || line)) AS ref FROM container
), host AS (
  SELECT CASE WHEN i.kind IN ('host-kill', 'restart', 'exit') THEN 'ended' END AS outcome, i.ref FROM focus f JOIN incident i ON i.incident = f.incident WHERE i.start_id IS NULL
)
SELECT nullif(coalesce(own.outcome, host.outcome, CASE WHEN own.start_id IS NULL THEN worst.outcome END, CASE WHEN (SELECT count(*) FROM incident) = 0 THEN coalesce(CASE WHEN frozen.minutes IS NOT NULL THEN 'stuck' END, quiet.outcome, box.outcome) END), 'not-told') AS outcome,
  coalesce(own.ref, host.ref, worst.ref, frozen.ref, quiet.ref, box.ref) AS ref
FROM (SELECT 1) LEFT JOIN own ON true LEFT JOIN host ON true LEFT JOIN worst ON true LEFT JOIN quiet ON true LEFT JOIN box ON true LEFT JOIN standstill frozen ON true
