-- says: one row per device that is not the server's: while it served, this one held less than a rank of it keeps (weights and pool), and as many others as it has ranks held that much throughout
-- scope: bundle
-- series: row of `device_series`
-- source: where its samples stand
-- gpu: device index
-- least_bytes: the least that it held while the server served
-- kept_bytes: weights and pool of a rank
-- ref: the line that states the pool
WITH plan AS (
  -- of a start that came up, and that nobody else's settings stand beside: what each of its ranks keeps from there on
  SELECT s.start_id, max(f.value) FILTER (f.name = 'weights_bytes') + min(f.value) FILTER (f.name = 'kv_available_bytes') AS kept_bytes,
    arg_min(f.source || ':' || f.line, f.line) FILTER (f.name = 'kv_available_bytes') AS ref
  FROM engine_start s
  JOIN engine_figure f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line AND f.name IN ('weights_bytes', 'kv_available_bytes')
  WHERE s.served GROUP BY s.start_id
), asked AS (
  SELECT start_id, product(ranks) AS ranks FROM (
    SELECT s.start_id, e.flag, max(TRY_CAST(e.value AS INTEGER)) AS ranks
    FROM engine_start s
    JOIN engine_flag e ON e.source = s.source AND e.line BETWEEN s.first_line AND s.last_line
    WHERE e.flag IN ('tensor_parallel_size', 'pipeline_parallel_size', 'data_parallel_size') GROUP BY ALL
  ) GROUP BY start_id
), up AS (
  SELECT s.start_id, min(m.t) AS from_t, (SELECT max(x.t) FROM engine_stat x WHERE x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line) AS to_t
  FROM engine_start s
  JOIN milestone m ON m.source = s.source AND m.line BETWEEN s.first_line AND s.last_line AND m.name IN ('serving', 'engine-ready')
  WHERE s.served GROUP BY ALL
), held AS (
  SELECT p.start_id, d.series, d.source, d.gpu, p.kept_bytes, p.ref, coalesce(a.ranks, 1) AS ranks, min(g.used_bytes) AS least_bytes
  FROM plan p
  JOIN up u USING (start_id)
  LEFT JOIN asked a USING (start_id)
  JOIN gpu_sample g ON g.t BETWEEN u.from_t AND u.to_t AND g.used_bytes IS NOT NULL
  JOIN device_series d ON d.source = g.source AND d.gpu = g.gpu
  WHERE p.kept_bytes > 0 AND coalesce((SELECT sum(samples) FROM device_series), 0) <= $most_followed
  GROUP BY ALL
)
SELECT series, source, gpu, min(least_bytes)::BIGINT AS least_bytes, max(kept_bytes)::BIGINT AS kept_bytes, min(ref) AS ref
FROM held h
WHERE least_bytes < $below_kept * kept_bytes
  AND (SELECT count(*) FROM held o WHERE o.start_id = h.start_id AND o.source = h.source AND o.least_bytes >= o.kept_bytes) >= ranks
GROUP BY series, source, gpu
HAVING count(DISTINCT start_id) = (SELECT count(DISTINCT start_id) FROM held)
