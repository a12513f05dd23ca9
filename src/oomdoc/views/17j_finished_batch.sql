-- says: work that was done to its end: every request that is told of was answered, the server was stopped in order when the last of them was through, and its pool never stood full; no row where that is not so, or the two cannot be compared in time
-- scope: bundle
-- requests: requests of which it is told what became of them
-- ref: where it was stopped
WITH stop AS (
  -- the last that is told, of a log that tells its orderly end as well
  SELECT m.source, m.line, m.t
  FROM milestone m
  JOIN note n ON n.topic = 'ended-orderly' AND n.source = m.source AND n.line >= m.line
  WHERE m.name = 'shutdown' AND m.t IS NOT NULL
  ORDER BY m.t DESC, m.source LIMIT 1
)
SELECT t.statuses AS requests, s.source || ':' || s.line AS ref
FROM traffic t
JOIN stop s ON s.t >= t.to_t
WHERE t.statuses >= $batch_requests AND t.failed + t.refused + t.unanswered + t.client_gone = 0
  AND NOT EXISTS (FROM engine_stat WHERE kv_used >= $pool_pinned)
