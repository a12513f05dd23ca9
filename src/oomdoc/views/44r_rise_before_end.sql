-- says: one row per device whose memory stands at one level, rises above it, and is gone with the next samples, each time that the server ended and at no other: what was asked for at last had no room; no row where that was not seen twice
-- scope: bundle
-- device: as the samples name it
-- ends: how often it fell to next to nothing
-- level_bytes: the most that is in use for a while, or what usually is
-- peak_bytes: the most that was in use before an end
-- ref: the sample before the first end
WITH sample AS (
  SELECT source, line, coalesce(name, '') AS device, bytes FROM process_memory WHERE resource = 'gpu' AND bytes IS NOT NULL
  UNION ALL
  SELECT source, line, concat_ws(' ', 'GPU', gpu), used_bytes
  FROM gpu_sample
  WHERE used_bytes IS NOT NULL AND coalesce((SELECT sum(samples) FROM device_series), 0) <= $most_followed
), moved AS (
  SELECT *, lag(bytes) OVER w AS before, max(bytes) OVER (PARTITION BY source, device) AS peak, min(bytes) OVER (w ROWS BETWEEN 1 FOLLOWING AND $gone_within FOLLOWING) AS soon
  FROM sample WINDOW w AS (PARTITION BY source, device ORDER BY line)
), lasting AS (
  -- what some samples in a row hold alike is a level: the reserve of the allocator after the first long prompt is a higher one
  SELECT *, bytes > $loaded_share * peak AND count(*) OVER w > $level_before AND max(bytes) OVER w - min(bytes) OVER w <= $level_alike * bytes AS lasts
  FROM moved WINDOW w AS (PARTITION BY source, device ORDER BY line ROWS BETWEEN $level_before PRECEDING AND CURRENT ROW)
), level AS (
  SELECT source, device, coalesce(max(bytes) FILTER (lasts), median(bytes)) AS level, any_value(peak) AS peak, count(*) AS n, count(*) FILTER (of_level) AS lasting
  FROM (
    SELECT *, coalesce(bool_or(lasts) OVER (PARTITION BY source, device ORDER BY line ROWS BETWEEN CURRENT ROW AND $level_before FOLLOWING), false) AS of_level
    FROM lasting
  )
  WHERE bytes > $loaded_share * peak GROUP BY ALL
), told AS (
  SELECT m.source, m.device, any_value(l.level) AS level, any_value(l.peak) AS peak, any_value(l.n) AS n,
    greatest(any_value(l.lasting), count(*) FILTER (m.bytes > $loaded_share * l.peak AND abs(m.bytes - l.level) <= $level_alike * l.level)) AS level_samples,
    count(*) FILTER (m.bytes >= l.level + $rise_bytes) AS high_samples,
    -- high, and next to nothing a few samples later
    count(*) FILTER (m.bytes >= l.level + $rise_bytes AND m.soon <= $next_to_nothing * l.peak) AS high_and_gone,
    count(*) FILTER (m.before > $next_to_nothing * l.peak AND m.bytes <= $next_to_nothing * l.peak) AS ends,
    max(m.bytes) FILTER (m.bytes >= l.level + $rise_bytes) AS most, min_by(m.source || ':' || m.line, m.line) FILTER (m.bytes >= l.level + $rise_bytes) AS ref
  FROM moved m JOIN level l USING (source, device) GROUP BY m.source, m.device
)
SELECT device, ends, level::BIGINT AS level_bytes, most::BIGINT AS peak_bytes, ref
FROM told
WHERE ends >= $ends_alike AND high_samples > 0 AND high_samples = high_and_gone AND high_samples >= ends AND peak >= $followed_bytes
  AND level_samples >= $level_often * n
ORDER BY ends DESC, device
