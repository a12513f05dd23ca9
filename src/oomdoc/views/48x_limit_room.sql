-- says: what a container held of its limit while it was sampled until the end of the server; no row where the limit, the samples or their times are not told, or they end earlier
-- scope: bundle
-- peak_bytes: the most that it held in any sample, files and all
-- step_bytes: the most that it gained from one sample to the next
-- limit_bytes: what it may hold, the least that is told
-- roomy: the largest step, once more and again, would not have reached the limit
-- ref: where the most stands
WITH bound AS (
  SELECT min(bytes) AS bytes FROM (
    SELECT memory_limit_bytes AS bytes FROM container WHERE memory_limit_bytes > 0 AND serves IS DISTINCT FROM false
    UNION ALL
    SELECT value::BIGINT FROM note WHERE topic = 'container-limit' AND value > 0
  )
), sample AS (
  -- the whole container: that one of its processes has room says nothing of the others
  SELECT source, line, coalesce(name, '') AS name, t, bytes, bytes - lag(bytes) OVER (PARTITION BY source, name, variant ORDER BY t, line) AS step
  FROM process_memory
  WHERE resource = 'container' AND t IS NOT NULL AND bytes > 0
)
SELECT max(s.bytes)::BIGINT AS peak_bytes, max(s.step)::BIGINT AS step_bytes, any_value(b.bytes) AS limit_bytes,
  max(s.bytes) + $steps_of_room * greatest(max(s.step), 0) <= any_value(b.bytes) AS roomy, arg_max(s.source || ':' || s.line, s.bytes) AS ref
FROM sample s, bound b
WHERE b.bytes IS NOT NULL
-- of several containers nobody says which is the server's
HAVING count(DISTINCT s.name) = 1 AND count(s.step) >= $trend_points
  AND max(s.t) >= (SELECT max(t) FROM (SELECT t FROM engine_stat UNION ALL SELECT t FROM milestone)) - $gone_with_it_s
