-- says: what a container or job held filled the limit of the server's own and was gone with the next sample, or all that was recorded of both ends there: it was ended at its limit, whoever tells of the kill; no row where that was never seen
-- scope: bundle
-- name: as the samples name it
-- peak_bytes: what it held last
-- limit_bytes: what it may hold
-- times: how often that was seen
-- ref: the sample before it was gone
WITH bound AS (
  -- what a helper beside it may hold is no limit of the server's
  SELECT DISTINCT memory_limit_bytes AS bytes FROM container WHERE memory_limit_bytes > 0 AND serves IS DISTINCT FROM false
  UNION
  SELECT value::BIGINT FROM note WHERE topic = 'container-limit' AND value > 0
), sample AS (
  SELECT source, line, name, moment, bytes, bytes - lag(bytes) OVER w AS step, lead(bytes) OVER w AS after
  FROM held_memory WINDOW w AS (PARTITION BY source, series ORDER BY moment, line)
)
-- full, or so near that the next step of the same size passes the limit
SELECT arg_max(coalesce(s.name, 'the container'), s.bytes) AS name, max(s.bytes)::BIGINT AS peak_bytes, arg_max(b.bytes, s.bytes) AS limit_bytes,
  count(DISTINCT s.source || ':' || s.line) AS times, arg_max(s.source || ':' || s.line, s.bytes) AS ref
FROM sample s
JOIN bound b ON s.bytes <= $limit_passed * b.bytes AND (s.bytes >= $limit_filled * b.bytes OR s.bytes + s.step >= b.bytes AND s.bytes >= $limit_near * b.bytes)
WHERE s.after <= $container_gone * s.bytes
  -- of several processes the largest is ended first: full to the last, and with the next sample far from it
  OR (s.bytes >= $limit_to_the_last * b.bytes AND s.after <= $worker_gone * s.bytes)
  -- or the recording ends there, with nothing left that could be given back, and the server says nothing any more either
  OR (s.bytes >= $limit_filled * b.bytes AND s.after IS NULL AND s.step >= 0
    AND EXISTS (FROM engine_start) AND NOT EXISTS (FROM main.life WHERE ended = 'stopped')
    AND s.moment >= (SELECT max(t) FROM (SELECT t FROM engine_stat UNION ALL SELECT t FROM milestone)) - $gone_with_it_s)
HAVING count(*) > 0
