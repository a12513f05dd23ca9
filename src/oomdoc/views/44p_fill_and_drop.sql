-- says: one row per device whose memory rises from next to nothing, and falls back to it: a process that loads and ends, as often as it did
-- scope: bundle
-- device: as the samples name it
-- peak_bytes: highest memory in use
-- times: how often it fell from near its peak to next to nothing
-- ref: the sample that shows the first fall
WITH sample AS (
  SELECT source, line, coalesce(name, '') AS device, bytes FROM process_memory WHERE resource = 'gpu' AND bytes IS NOT NULL
  UNION ALL
  SELECT source, line, 'GPU ' || gpu, used_bytes
  FROM gpu_sample
  WHERE used_bytes IS NOT NULL AND coalesce((SELECT sum(samples) FROM device_series), 0) <= $most_followed
), moved AS (
  SELECT *, lag(bytes) OVER (PARTITION BY source, device ORDER BY line) AS before, max(bytes) OVER (PARTITION BY source, device) AS peak
  FROM sample
)
SELECT device, any_value(peak)::BIGINT AS peak_bytes, count(*) AS times, min_by(source || ':' || line, line) AS ref
FROM moved WHERE peak >= $followed_bytes AND before >= $near_the_peak * peak AND bytes <= $next_to_nothing * peak GROUP BY source, device
