-- says: requests that were handed in at once and worked off, once or several times one after another: the line in front of the engine starts at its height, only gets shorter and is gone before the next, while the pool has room; a row for each start of which this is so
-- scope: bundle
-- start_id: engine start
-- waiting: how many waited at the beginning, the most of all times
-- heaps: how many times
-- peak: highest usage of the pool, 0..1
-- ref: where nobody waited any more, the last time
WITH roomy AS (
  -- what is so of a whole start needs no look at the line before each
  SELECT s.start_id
  FROM engine_stat x JOIN engine_start s ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line WHERE x.waiting IS NOT NULL
  GROUP BY s.start_id
  HAVING count(*) >= $queue_lines AND max(x.waiting) > 0 AND max(x.kv_used) < $pool_crowded
), stat AS (
  SELECT s.start_id, x.line, x.source || ':' || x.line AS ref, x.running, x.waiting, x.kv_used, lag(x.waiting) OVER w AS before,
    coalesce(lag(x.waiting) OVER w + lag(x.running) OVER w = 0, false) AS rested
  FROM engine_stat x JOIN engine_start s ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  JOIN roomy USING (start_id)
  WHERE x.waiting IS NOT NULL
  WINDOW w AS (PARTITION BY s.start_id ORDER BY x.line)
), bout AS (
  -- where the engine had nothing to do before, another heap begins; what comes then refills none
  SELECT start_id, count(*) AS samples, max(waiting) AS waiting, arg_min(waiting, line) FILTER (waiting > 0) AS first_waiting,
    arg_max(waiting, line) AS last_waiting, coalesce(sum(greatest(waiting - before, 0)) FILTER (NOT rested), 0) AS refilled,
    max(kv_used) AS peak, min_by(ref, line) FILTER (waiting = 0 AND before > 0) AS ref, max(line) AS line
  FROM (SELECT *, sum(rested::INT) OVER (PARTITION BY start_id ORDER BY line) AS nth FROM stat)
  GROUP BY start_id, nth
)
SELECT start_id, max(waiting) AS waiting, count(*) FILTER (waiting > 0) AS heaps, max(peak) AS peak, max_by(ref, line) FILTER (waiting > 0) AS ref
FROM bout
GROUP BY start_id
HAVING bool_and(last_waiting = 0)
  AND bool_and(coalesce(waiting <= $heap_height * first_waiting, true)) AND bool_and(refilled <= $heap_refill * waiting)
