-- says: memory that is told as a share of the whole (percent of a host, a container, a device) over time; one row, NULLs where none is told often enough
-- scope: bundle
-- series: series with enough points and time
-- climbing: one of them rises beyond its noise, without a plateau, until its end
-- name: whose, of the one that rises most
-- resource: host-used (of the whole node), container, gpu
-- first_share: its beginning
-- last_share: its end
-- hours: between the two
-- samples: its points
-- ref: where its last point stands
-- control: another series of the same kind that has as many hours and does not rise
-- control_share: where that one ends
-- flat: none rises, and the longest stays within a level
-- flat_share: the middle of the longest
-- flat_samples: its points
-- flat_ref: where its last point stands
WITH point AS (
  SELECT source, coalesce(name, '') AS name, resource, coalesce(variant, '') AS variant, share, coalesce(t, elapsed_s) AS moment, line,
    ntile(60) OVER (PARTITION BY source, name, resource, variant ORDER BY coalesce(t, elapsed_s), line) AS bin
  FROM process_memory WHERE share IS NOT NULL AND state IS NULL AND coalesce(t, elapsed_s) IS NOT NULL
), binned AS (
  SELECT source, name, resource, variant, bin, median(share) AS y, median(moment) AS moment, max(line) AS line FROM point GROUP BY ALL
), curve AS (
  SELECT *, row_number() OVER w AS i, y - lag(y) OVER w AS rise, count(*) OVER (PARTITION BY source, name, resource, variant) AS n,
    greatest(1, n // 10) AS tenth
  FROM binned
  WINDOW w AS (PARTITION BY source, name, resource, variant ORDER BY bin)
), shape AS (
  SELECT source, name, resource, variant, any_value(n) AS n, median(y) FILTER (i <= tenth) AS first_y,
    median(y) FILTER (i > n - tenth) AS last_y, median(y) FILTER (abs(2 * i - n - 1) <= tenth) AS mid_y, max(y) AS high, max(rise) AS jump,
         median(y) AS middle, quantile_cont(y, 0.95) - quantile_cont(y, 0.05) AS spread, max(moment) - min(moment) AS seconds,
           max(line) AS line
  FROM curve WHERE n >= $trend_points GROUP BY ALL HAVING max(moment) - min(moment) >= $trend_s
), concord AS (
  SELECT a.source, a.name, a.resource, a.variant, avg(sign(b.y - a.y)) AS agreed
  FROM curve a
  JOIN curve b ON a.source = b.source AND a.name = b.name AND a.resource = b.resource AND a.variant = b.variant AND a.i < b.i
  GROUP BY ALL
), judged AS (
  SELECT s.*,
    agreed >= $trend_concord AND last_y - first_y >= $share_rise AND last_y - mid_y >= $trend_late * (last_y - first_y)
      AND jump <= $trend_jump * (last_y - first_y) AND last_y >= high - $trend_kept * (last_y - first_y) AS climbs,
         spread <= $level_share AS stays, nullif(concat_ws(' ', nullif(name, ''), nullif(variant, '')), '') AS who
  FROM shape s JOIN concord USING (source, name, resource, variant)
), best AS (
  SELECT count(*) AS series, arg_max(judged, last_y - first_y) FILTER (climbs) AS b, arg_max(judged, n) FILTER (stays) AS f FROM judged
)
SELECT nullif(series, 0) AS series, CASE WHEN series > 0 THEN b IS NOT NULL END AS climbing, b.who AS name, b.resource,
  b.first_y AS first_share, b.last_y AS last_share, b.seconds / 3600 AS hours, b.n AS samples, b.source || ':' || b.line AS ref,
  c.who AS control, c.last_y AS control_share,
  CASE WHEN series > 0 THEN b IS NULL AND f IS NOT NULL END AS flat, CASE WHEN b IS NULL THEN f.middle END AS flat_share,
    CASE WHEN b IS NULL THEN f.n END AS flat_samples, CASE WHEN b IS NULL THEN f.source || ':' || f.line END AS flat_ref
FROM best
LEFT JOIN (SELECT * FROM judged) c ON c.stays AND c.resource = b.resource AND c.seconds >= b.seconds / 2
  AND c.who IS DISTINCT FROM b.who
QUALIFY row_number() OVER (ORDER BY c.seconds DESC NULLS LAST, c.who) = 1
