-- says: requests that were handed in at once and worked off: the line in front of the engine starts at its height, only gets shorter and is gone at the end, while the pool has room; a row for each start of which this is so
-- scope: bundle
-- start_id: engine start
-- waiting: how many waited at the beginning
-- peak: highest usage of the pool, 0..1
-- ref: where nobody waited any more
WITH stat AS (
  SELECT s.start_id, x.line, x.source || ':' || x.line AS ref, x.running, x.waiting, x.kv_used,
    lag(x.waiting) OVER (PARTITION BY s.start_id ORDER BY x.line) AS before
  FROM engine_stat x JOIN engine_start s ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line WHERE x.waiting IS NOT NULL
)
SELECT start_id, max(waiting) AS waiting, max(kv_used) AS peak, min_by(ref, line) FILTER (waiting = 0) AS ref
FROM stat GROUP BY start_id
HAVING count(*) >= $queue_lines AND max(waiting) > 0 AND max(waiting) <= $heap_height * arg_min(waiting, line)
  AND arg_max(waiting, line) = 0 AND max(kv_used) < $pool_crowded
  AND sum(greatest(waiting - before, 0)) <= $heap_refill * max(waiting)
