-- says: the outcome that the incident in focus has to explain; one row, without an outcome where the bundle shows none
-- scope: incident
-- outcome: as in `outcome`; NULL = not told
-- ref: the line that shows it
WITH own AS (
  SELECT o.outcome, o.ref, i.start_id FROM focus f JOIN incident i ON i.incident = f.incident LEFT JOIN outcome o ON o.start_id = i.start_id
), worst AS (
  -- without an incident the gravest of its lives speaks
  SELECT outcome, ref, start_id
  FROM outcome
  ORDER BY list_position(['refused', 'died', 'ended', 'stuck', 'degraded', 'grew', 'starting', 'not-told', 'served'], outcome), start_id
  LIMIT 1
), gauge AS (
  -- without a log the counters of the server speak: requests were finished, nobody waits, nothing was preempted
  SELECT max(value) FILTER (name LIKE 'vllm:request_success%') AS done,
    max(value) FILTER (name = 'vllm:generation_tokens_total') - min(value) FILTER (name = 'vllm:generation_tokens_total') AS made, max(value) FILTER (name = 'vllm:num_requests_waiting') AS waiting,
         max(value) FILTER (name LIKE 'vllm:num_preemptions%' AND NOT EXISTS (FROM preempted_aside)) AS preempted,
           max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')) AS kv_used,
         coalesce(min(source || ':' || line) FILTER (name LIKE 'vllm:request_success%'), min(source || ':' || line) FILTER (name = 'vllm:generation_tokens_total')) AS ref
  FROM metric WHERE name LIKE 'vllm:%'
), quiet AS (
  -- the most that waits and the fullest that the pool was may be of two hours: where there are readings, they tell of one moment
  SELECT CASE WHEN preempted > 0 OR coalesce((SELECT queued_full > 0 FROM kv_pressure WHERE samples > 0), waiting > 0 AND kv_used >= $pool_crowded) THEN 'degraded'
    WHEN (done > 0 OR made > 0) AND coalesce((SELECT queued = 0 FROM kv_pressure WHERE samples > 0), coalesce(waiting, 0) = 0) THEN 'served' END AS outcome, ref
  FROM gauge
), box AS (
  -- or its container: it runs, is ready or not told otherwise, and was never started again but after its machine (255 and Unknown: the kubelet found it gone); or it was ended or evicted
  SELECT CASE WHEN bool_and(last_reason IS NULL AND reason IS NULL AND exit_code BETWEEN 1 AND 127 AND coalesce(restarts, 0) > 0) THEN 'died'
    WHEN bool_or(fell) THEN CASE WHEN bool_and(by_itself) FILTER (fell) THEN 'died' ELSE 'ended' END
              WHEN bool_and(state = 'Running' AND restarts = 0) AND (SELECT n >= $unready_for_an_hour FROM unready) THEN 'stuck'
              WHEN (SELECT n >= $unready_through_a_start FROM unready) THEN NULL
              WHEN bool_and(state = 'Running' AND (restarts = 0 OR with_machine)) THEN 'served'
                END AS outcome,
         coalesce(
           min(source || ':' || line) FILTER (fell),
           min(source || ':' || line)
         ) AS ref
         FROM (
           SELECT *, coalesce(last_reason, reason) IN ('OOMKilled', 'Error', 'Evicted') AND NOT orderly AND NOT another_day AS fell FROM container_end
         )
), host AS (
  SELECT CASE WHEN i.kind = 'restart' AND (SELECT outcome FROM box) = 'died' AND NOT EXISTS (FROM outcome WHERE outcome = 'ended') THEN 'died'
    WHEN i.kind IN ('host-kill', 'restart', 'exit') THEN 'ended' END AS outcome, i.ref
  FROM focus f
  JOIN incident i ON i.incident = f.incident
  WHERE i.start_id IS NULL
), answer AS (
  -- each speaks where those before it say nothing; who was slow stands still where its counters do at last, with work in hand
  SELECT 0 AS place, 'stuck' AS outcome, ref FROM standstill WHERE coalesce((SELECT outcome FROM own), (SELECT outcome FROM worst)) IN ('degraded', 'served')
  UNION ALL SELECT 1, outcome, ref FROM own
  UNION ALL SELECT 2, outcome, ref FROM host
  UNION ALL SELECT 3, outcome, ref FROM worst
    WHERE NOT EXISTS (FROM own WHERE start_id IS NOT NULL)
      -- a log that shows no start and does not tell leaves the word to counters that do
      AND NOT (outcome = 'not-told' AND start_id LIKE '%#0' AND EXISTS (FROM quiet WHERE outcome IS NOT NULL))
  UNION ALL SELECT 4, 'stuck', ref FROM standstill WHERE NOT EXISTS (FROM incident)
  UNION ALL SELECT 5, outcome, ref FROM quiet WHERE NOT EXISTS (FROM incident)
  UNION ALL SELECT 6, outcome, ref FROM box WHERE NOT EXISTS (FROM incident)
), chosen AS (
  SELECT arg_min(outcome, place) AS outcome FROM answer
)
-- its line is that of the first who says the same and can show it: no line of a log says that the server served
SELECT nullif(c.outcome, 'not-told') AS outcome, arg_min(a.ref, a.place) AS ref
FROM chosen c
LEFT JOIN answer a ON a.outcome = c.outcome
GROUP BY c.outcome
