-- says: two owners of one kind that gained the same between two readings hours apart: what they share grows, not the traffic of one; one row, NULLs where no two can be compared
-- scope: bundle
-- owners: how many are compared, with two readings or more at a distance and too few for a trend
-- alike: two of them gained, and the same
-- resource: host or gpu
-- name: who gained more
-- other: who gained as much
-- gain_bytes: of the first
-- other_gain_bytes: of the other
-- hours: between the readings of the first
-- ref: where its last reading stands
WITH owner AS (
  SELECT source, resource, concat_ws(' ', nullif(name, ''), nullif(variant, '')) AS name,
    arg_min(bytes, coalesce(t, elapsed_s)) AS first_bytes, arg_max(bytes, coalesce(t, elapsed_s)) - first_bytes AS gain,
         max(coalesce(t, elapsed_s)) - min(coalesce(t, elapsed_s)) AS seconds, arg_max(source || ':' || line, coalesce(t, elapsed_s)) AS ref
  FROM process_memory WHERE bytes > 0 AND coalesce(t, elapsed_s) IS NOT NULL AND state IS NULL AND resource IN ('host', 'gpu') GROUP BY ALL
  HAVING count(*) < $trend_points AND max(coalesce(t, elapsed_s)) - min(coalesce(t, elapsed_s)) >= $trend_s
), pair AS (
  SELECT a.*, b.name AS other, b.gain AS other_gain
  FROM owner a
  JOIN owner b ON a.resource = b.resource AND a.name <> b.name AND a.gain >= b.gain
  WHERE b.gain >= greatest($trend_bytes, $level_share * b.first_bytes) AND a.gain <= (1 + $gain_alike) * b.gain
    AND abs(a.seconds - b.seconds) <= $gain_alike * a.seconds
), best AS (
  SELECT arg_max(pair, gain) AS p FROM pair
)
SELECT CASE WHEN n.owners >= 2 THEN n.owners END AS owners, CASE WHEN n.owners >= 2 THEN p IS NOT NULL END AS alike, p.resource,
  nullif(p.name, '') AS name, nullif(p.other, '') AS other, p.gain AS gain_bytes, p.other_gain AS other_gain_bytes,
  p.seconds / 3600 AS hours, p.ref
FROM best, (SELECT count(*) AS owners FROM owner) n
