-- says: whether memory is a function of the load that stands beside it: what it holds at equal load, early and late; no row where no series tells its load often enough, or the load never fell again
-- scope: bundle
-- name: whose
-- resource: host or gpu; NULL = not told
-- samples: readings with a load
-- low_bytes: held at the lowest load, by the line through all readings
-- high_bytes: held at the highest load, by the same line
-- explained: share of the variance that the load explains
-- drift_bytes: what the last third holds more than the first at equal load
-- follows: the load explains nearly all, and at equal load nothing was gained
-- drifts: at equal load the last third holds more, beyond the scatter, and so does the middle
-- ref: the last reading
WITH reading AS (
  SELECT source, coalesce(name, '') AS name, resource, coalesce(variant, '') AS variant, bytes, running, source || ':' || line AS ref,
    row_number() OVER w AS i, count(*) OVER (PARTITION BY source, name, resource, variant) AS n
  FROM process_memory
  WHERE running IS NOT NULL AND bytes > 0 AND coalesce(resource, 'host') IN ('host', 'gpu')
  WINDOW w AS (PARTITION BY source, name, resource, variant ORDER BY coalesce(t, elapsed_s, step), line)
), fitted AS (
  SELECT source, name, resource, variant, regr_slope(bytes, running) AS slope, regr_intercept(bytes, running) AS base,
    regr_r2(bytes, running) AS r2, min(running) AS low, max(running) AS high, median(bytes) AS middle,
         avg(running) FILTER (10 * i > 9 * n) AS last_load
  FROM reading
  WHERE n >= $load_points
  GROUP BY ALL
  HAVING max(running) > 0 AND max(running) >= $load_range * min(running) AND last_load <= (min(running) + max(running)) / 2
), rest AS (
  SELECT r.source, r.name, r.resource, r.variant, any_value(f.slope) AS slope, any_value(f.base) AS base, any_value(f.r2) AS r2,
    any_value(f.low) AS low, any_value(f.high) AS high, any_value(f.middle) AS middle, any_value(n) AS n,
         median(bytes - base - slope * running) FILTER (3 * i <= n) AS early,
           median(bytes - base - slope * running) FILTER (3 * i > n AND 3 * i <= 2 * n) AS mid,
           median(bytes - base - slope * running) FILTER (3 * i > 2 * n) AS late,
         regr_r2(bytes - base - slope * running, i) AS trend, arg_max(ref, i) AS ref
  FROM reading r
  JOIN fitted f ON f.source = r.source AND f.name = r.name AND f.resource IS NOT DISTINCT FROM r.resource AND f.variant = r.variant
  GROUP BY ALL
)
SELECT nullif(name, '') AS name, resource, n AS samples, (base + slope * low)::BIGINT AS low_bytes,
  (base + slope * high)::BIGINT AS high_bytes, r2 AS explained, (late - early)::BIGINT AS drift_bytes,
       r2 >= $load_explains AND slope * (high - low) >= $trend_bytes
         AND abs(late - early) <= greatest($level_share * middle, $level_bytes) AS follows,
       late - early >= greatest($trend_bytes, $level_share * middle) AND mid BETWEEN early AND late
         AND trend >= $load_explains / 2 AS drifts, ref
FROM rest ORDER BY follows OR drifts DESC, slope * (high - low) DESC LIMIT 1
