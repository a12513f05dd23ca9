-- says: what a container held of its limit while it was sampled until the end of the server; no row where the limit, the samples or their times are not told, or they end earlier
-- scope: bundle
-- peak_bytes: the most that it held in any sample, files and all
-- step_bytes: the most that it gained from one sample to the next
-- limit_bytes: what it may hold
-- roomy: two steps more, each as large as the largest, would not have reached the limit: nothing says that it was ever near it
-- ref: where the most stands
WITH bound AS (
  SELECT min(bytes) AS bytes FROM (
    SELECT memory_limit_bytes AS bytes FROM container WHERE memory_limit_bytes > 0 AND serves IS DISTINCT FROM false
    UNION ALL
    SELECT value::BIGINT FROM note WHERE topic = 'container-limit' AND value > 0
  )
), sample AS (
  SELECT source, line, series, name, moment AS t, bytes, bytes - lag(bytes) OVER (PARTITION BY source, series ORDER BY moment, line) AS step
  -- what the container holds with the files that the kernel would give up first: the more so if that has room
  FROM (FROM held_memory UNION ALL BY NAME SELECT source, line, concat_ws(' ', name, variant) AS series, name, t AS moment, bytes FROM process_memory WHERE resource = 'container' AND t IS NOT NULL)
)
SELECT max(s.bytes)::BIGINT AS peak_bytes, max(s.step)::BIGINT AS step_bytes, any_value(b.bytes) AS limit_bytes,
  max(s.bytes) + 2 * greatest(max(s.step), 0) <= any_value(b.bytes) AS roomy, arg_max(s.source || ':' || s.line, s.bytes) AS ref
FROM sample s, bound b
WHERE b.bytes IS NOT NULL
-- of several containers nobody says which is the server's
HAVING count(DISTINCT coalesce(s.name, '')) = 1 AND count(s.step) >= $trend_points
  AND max(s.t) >= (SELECT max(t) FROM (SELECT t FROM engine_stat UNION ALL SELECT t FROM milestone)) - $gone_with_it_s
