-- says: one row per engine start in which one request fills the pool, is put back and is computed from its beginning, again and again, with nothing generated
-- scope: bundle
-- start_id: engine start
-- falls: times that the pool fell from nearly full to empty while a request was left waiting and none ran
-- peak: highest usage that a fall came from, 0..1
-- first_ref: the first fall
-- ref: the last
WITH stat AS (
  SELECT s.start_id, x.source, x.line, x.running, x.waiting, x.kv_used, x.generation_tokens_per_s AS made,
         lag(x.running) OVER w AS running_before, lag(x.kv_used) OVER w AS used_before
  FROM engine_stat x JOIN engine_start s ON s.source = x.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE x.kv_used IS NOT NULL AND x.running IS NOT NULL
    -- where no line could be a fall there is none
    AND EXISTS (FROM engine_stat WHERE running = 0 AND waiting > 0 AND kv_used <= $pool_empty)
  WINDOW w AS (PARTITION BY s.start_id ORDER BY x.line)
), fall AS (
  SELECT *, running = 0 AND waiting > 0 AND kv_used <= $pool_empty AND running_before = 1 AND used_before >= $pool_crowded AS falls
  FROM stat
)
SELECT start_id, count(*) FILTER (falls) AS falls, max(used_before) FILTER (falls) AS peak,
  min_by(source || ':' || line, line) FILTER (falls) AS first_ref, max_by(source || ':' || line, line) FILTER (falls) AS ref
FROM fall f GROUP BY start_id
-- nothing comes of it: between the first fall and the last not one token is generated
HAVING count(*) FILTER (falls) >= $falls_again
  AND max(made) FILTER (
    line BETWEEN (
      SELECT min(line) FROM fall g WHERE g.start_id = f.start_id AND g.falls
    ) AND (SELECT max(line) FROM fall g WHERE g.start_id = f.start_id AND g.falls)
  ) = 0
