-- says: an allocation that fails alike at several settings of gpu_memory_utilization: what failed was no part of that budget; no row where that is not so
-- scope: bundle
-- starts: starts that failed so
-- lowest: the lowest utilization among them
-- highest: the highest
-- requested_bytes: the failed request, the same in all
-- allocated_bytes: what torch held then
-- ref: the first of the messages
WITH told AS (
  SELECT s.start_id, o.requested_bytes, o.allocated_bytes, o.total_bytes, min(o.source || ':' || o.line) AS ref,
    any_value(try_cast(f.value AS DOUBLE)) AS utilization
  FROM oom o
  JOIN engine_start s ON s.source = o.source AND o.line BETWEEN s.first_line AND s.last_line
  JOIN engine_flag f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line AND f.flag = 'gpu_memory_utilization'
  WHERE o.allocated_bytes > 0 GROUP BY s.start_id, o.requested_bytes, o.allocated_bytes, o.total_bytes
)
SELECT count(DISTINCT a.start_id) + 1 AS starts, least(min(a.utilization), min(b.utilization)) AS lowest,
  greatest(max(a.utilization), max(b.utilization)) AS highest, any_value(a.requested_bytes) AS requested_bytes,
  any_value(a.allocated_bytes) AS allocated_bytes, min(a.ref) AS ref
FROM told a
JOIN told b ON a.start_id < b.start_id AND a.requested_bytes = b.requested_bytes AND a.total_bytes IS NOT DISTINCT FROM b.total_bytes
WHERE abs(a.utilization - b.utilization) >= $utilization_moved
  AND abs(a.allocated_bytes - b.allocated_bytes) <= $same_weights * a.allocated_bytes
HAVING count(*) > 0
