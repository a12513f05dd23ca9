-- says: a life of a server whose pool was pressed in its first hours alone, as by a load test before it takes traffic: from then on it works for half a day and more and never fills half of the pool; no row where none is
-- scope: bundle
-- start_id: engine start
-- source: its log
-- until_t: when the pool was last used to half, seconds
-- hours: from then to the last reading
-- readings: readings with requests running since
-- ref: the first reading of a crowded pool with requests waiting
WITH reading AS (
  SELECT s.start_id, s.source, s.t AS start_t, x.t, x.line, x.kv_used, x.running, x.waiting
  FROM engine_start s
  JOIN engine_stat x ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE s.t IS NOT NULL AND x.t >= s.t AND x.kv_used IS NOT NULL
), filled AS (
  SELECT start_id, source, start_t, max(t) FILTER (kv_used >= $pool_roomy) AS until_t, max(t) AS last_t,
    min(line) FILTER (kv_used >= $pool_crowded AND waiting > 0) AS line
  FROM reading GROUP BY start_id, source, start_t
)
SELECT f.start_id, f.source, f.until_t, (f.last_t - f.until_t) / 3600 AS hours, count(*) AS readings, f.source || ':' || f.line AS ref
FROM filled f
JOIN reading r ON r.start_id = f.start_id AND r.t > f.until_t AND r.running > 0
WHERE f.until_t - f.start_t <= $launch_s AND f.last_t - f.until_t >= $launch_past_s AND f.line IS NOT NULL
GROUP BY f.start_id, f.source, f.until_t, f.last_t, f.line
HAVING count(*) >= $launch_readings
ORDER BY f.start_id
