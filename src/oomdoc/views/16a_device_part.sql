-- says: the least and the most that a device held in each sixth of a recording of it
-- scope: bundle
-- series: number of the recording
-- source: where it stands
-- gpu: which device
-- part: 0 to 5
-- low: the lowest reading of the part, bytes
-- high: the highest reading of the part, bytes
-- last_line: the last line of the part
-- seconds: how long the recording is
WITH own AS (
  SELECT source, coalesce(name, '') AS name, coalesce(variant, '') AS variant, bytes, line, coalesce(t, elapsed_s) AS moment
  FROM process_memory
  WHERE resource = 'gpu' AND state IS NULL AND coalesce(t, elapsed_s) IS NOT NULL AND bytes IS NOT NULL
), span AS (
  SELECT source, name, variant, min(moment) AS from_t, max(moment) - min(moment) AS seconds,
    row_number() OVER (ORDER BY source, name, variant) + 1000000 AS series
  FROM own
  GROUP BY source, name, variant
  HAVING count(*) >= $device_samples AND max(moment) - min(moment) >= $trend_s
)
SELECT d.series, any_value(d.source) AS source, 'GPU ' || coalesce(any_value(d.gpu)::VARCHAR, '?') AS gpu,
  least(5, floor((g.t - d.from_t) / d.seconds * 6))::INTEGER AS part, min(g.used_bytes) AS low, max(g.used_bytes) AS high,
  max(g.line) AS last_line, any_value(d.seconds) AS seconds
FROM gpu_sample g JOIN device_series d ON d.source = g.source AND d.gpu IS NOT DISTINCT FROM g.gpu
WHERE d.timed >= $device_samples AND d.seconds >= $trend_s AND g.used_bytes IS NOT NULL GROUP BY d.series, part
UNION ALL
SELECT s.series, s.source, coalesce(nullif(concat_ws(' ', nullif(s.name, ''), nullif(s.variant, '')), ''), 'the device'),
  least(5, floor((o.moment - s.from_t) / s.seconds * 6))::INTEGER AS part, min(o.bytes), max(o.bytes), max(o.line), any_value(s.seconds)
FROM own o JOIN span s USING (source, name, variant) GROUP BY s.series, s.source, s.name, s.variant, part
