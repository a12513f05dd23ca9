-- says: what belongs to nobody whom the failed allocation's message names came to the device after it had stood at one level, or is what is left on it when the engine is gone; no row where that was not seen
-- scope: incident
-- bytes: what of the failing device belongs to nobody, by subtraction
-- seen_bytes: by how much the device's memory in use rose, or what is left of it
-- how: the same in words
-- ref: the sample that begins the rise, or shows what is left
WITH books AS (
  SELECT bytes, coalesce((SELECT weights_bytes FROM engine), 0) AS weights FROM unowned WHERE bytes >= $taken_least
), sample AS (
  SELECT source, gpu, line, used_bytes AS used, lag(used_bytes) OVER w AS before,
    max(used_bytes) OVER earlier - min(used_bytes) OVER earlier AS swing, count(*) OVER earlier AS stood, max(used_bytes) OVER soon AS most
  FROM gpu_sample
  WHERE used_bytes IS NOT NULL AND EXISTS (FROM books) AND coalesce((SELECT sum(samples) FROM device_series), 0) <= $most_followed
  WINDOW w AS (PARTITION BY source, gpu ORDER BY line), earlier AS (w ROWS BETWEEN $stood_before PRECEDING AND 1 PRECEDING), soon AS (w ROWS BETWEEN CURRENT ROW AND $risen_within FOLLOWING)
), seen AS (
  -- an engine that serves: what stood there is at least what its weights take; clocks of two programs, of two zones at that, are not compared
  SELECT b.bytes, s.most - s.before AS seen_bytes, 'they came when it had stood at one level' AS how, s.source || ':' || s.line AS ref, s.line
  FROM sample s, books b
  WHERE s.stood >= $stood_before AND s.swing <= $step_alike * b.bytes AND s.before >= b.weights AND s.used - s.before > $step_alike * b.bytes
    AND abs(s.most - s.before - b.bytes) <= $step_alike * b.bytes
  UNION ALL
  SELECT b.bytes, s.used, 'they are there still when the engine is gone', s.source || ':' || s.line, s.line
  FROM sample s, books b
  WHERE b.weights > 0 AND s.before - s.used >= b.weights AND abs(s.used - b.bytes) <= $step_alike * b.bytes
)
SELECT bytes::BIGINT AS bytes, seen_bytes::BIGINT AS seen_bytes, how, ref FROM seen ORDER BY abs(seen_bytes - bytes), ref LIMIT 1
