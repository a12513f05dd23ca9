-- says: two engines that began on the one card of the host within moments of each other, the second before the first had loaded, and were refused: each counts what the other takes; no row otherwise
-- scope: bundle
-- engines: how many began so
-- apart_s: seconds between the first and the last
-- ref: where the second began
-- other_ref: where the first began
WITH began AS (
  SELECT source, line, t, pid FROM milestone WHERE name = 'engine-init' AND t IS NOT NULL
), pair AS (
  SELECT a.source || ':' || a.line AS other_ref, b.source || ':' || b.line AS ref, b.t - a.t AS apart_s
  FROM began a
  -- a log that was handed in twice tells one engine, with one pid
  JOIN began b ON b.t - a.t BETWEEN 0 AND $at_once_s AND ((b.source = a.source AND b.line > a.line) OR (b.source <> a.source AND b.pid <> a.pid))
  WHERE NOT EXISTS (
      FROM milestone m WHERE m.source = a.source AND m.name IN ('loaded', 'kv-blocks', 'kv-sized') AND m.line > a.line AND (m.line < b.line OR b.source <> a.source) AND m.t < b.t
    )
    AND EXISTS (FROM startup_check c WHERE c.source = b.source AND c.line > b.line AND c.name IN ('no-kv-blocks', 'kv-below-max-model-len', 'free-memory'))
)
SELECT (SELECT count(DISTINCT place) FROM (SELECT ref AS place FROM pair UNION ALL SELECT other_ref FROM pair)) AS engines, max(apart_s) AS apart_s,
  max_by(ref, apart_s) AS ref, max_by(other_ref, apart_s) AS other_ref
FROM pair
WHERE (SELECT devices FROM device) = 1 AND NOT EXISTS (FROM lone_refusal)
HAVING count(*) > 0
