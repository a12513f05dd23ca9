-- says: one row per engine start in which one request fills the pool, is put back and is computed from its beginning, again and again, with nothing generated
-- scope: bundle
-- start_id: engine start
-- falls: times that the pool fell from nearly full to empty while a request was left waiting and none ran
-- peak: highest usage that a fall came from, 0..1
-- first_ref: the first fall
-- ref: the last
WITH stat AS (
  SELECT s.start_id, x.line, x.running = 0 AND x.waiting > 0 AND x.kv_used <= $pool_empty AS empties,
    lag(s.start_id) OVER w = s.start_id AS goes_on,
    lag(CASE WHEN x.running = 1 AND x.kv_used >= $pool_crowded THEN x.kv_used END) OVER w AS used_before
  FROM engine_stat x JOIN engine_start s ON s.source = x.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE x.kv_used IS NOT NULL AND x.running IS NOT NULL
    -- what comes before each of a million lines is looked at where enough of them can be such falls, and only there
    AND (SELECT count(*) FROM engine_stat WHERE running = 0 AND waiting > 0 AND kv_used <= $pool_empty) >= $falls_again
    AND EXISTS (FROM engine_stat WHERE running = 1 AND kv_used >= $pool_crowded)
  WINDOW w AS (ORDER BY s.start_id, x.line)
), fall AS (
  SELECT start_id, count(*) AS falls, max(used_before) AS peak, min(line) AS first_line, max(line) AS last_line
  FROM stat
  WHERE goes_on AND empties AND used_before IS NOT NULL GROUP BY start_id HAVING count(*) >= $falls_again
)
SELECT f.start_id, f.falls, f.peak, s.source || ':' || f.first_line AS first_ref, s.source || ':' || f.last_line AS ref
FROM fall f JOIN engine_start s USING (start_id)
-- nothing comes of it: between the first fall and the last not one token is generated
WHERE (
  SELECT max(generation_tokens_per_s) FROM engine_stat x
  WHERE x.source = s.source AND x.line BETWEEN f.first_line AND f.last_line AND x.kv_used IS NOT NULL AND x.running IS NOT NULL
) = 0
