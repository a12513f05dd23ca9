-- says: starts of a log that end without a word behind the sizing of their pool, where graphs are captured, and one in eager mode that came up; no row where only one ended so, or none in eager mode served
-- scope: bundle
-- starts: how many ended so
-- eager_start: the one that came up
-- ref: where that begins
WITH mode AS (
  SELECT s.start_id, s.source, s.first_line, s.served, s.last_milestone, bool_or(lower(g.value) = 'true') AS eager
  FROM engine_start s LEFT JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line AND g.flag = 'enforce_eager'
  WHERE s.marked
  GROUP BY ALL
)
SELECT count(*) AS starts, any_value(e.start_id) AS eager_start, any_value(e.source || ':' || greatest(e.first_line, 1)) AS ref
FROM mode m, (FROM mode WHERE served AND eager ORDER BY source, first_line LIMIT 1) e
WHERE m.source = e.source AND NOT m.served AND NOT coalesce(m.eager, false) AND m.last_milestone IN ('kv-available', 'kv-sized', 'kv-blocks', 'capture-start', 'capture-progress')
HAVING count(*) >= $starts_in_a_row
