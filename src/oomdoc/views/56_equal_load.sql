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
-- drifts: at equal load the last third holds more, beyond the scatter, and within it goes on to rise where there are readings enough to tell
-- ref: the last reading
WITH reading AS (
  SELECT source, coalesce(name, '') AS name, resource, coalesce(variant, '') AS variant, bytes, running, source || ':' || line AS ref,
    row_number() OVER w AS i, count(*) OVER (PARTITION BY source, name, resource, variant) AS n
  FROM process_memory
  WHERE running IS NOT NULL AND bytes > 0 AND coalesce(resource, 'host') IN ('host', 'gpu')
  WINDOW w AS (PARTITION BY source, name, resource, variant ORDER BY coalesce(t, elapsed_s, step), line)
), fitted AS (
  SELECT *, regr_slope(bytes, running) OVER s AS slope, regr_intercept(bytes, running) OVER s AS base,
    regr_r2(bytes, running) OVER s AS r2, min(running) OVER s AS low, max(running) OVER s AS high, median(bytes) OVER s AS middle
  FROM reading
  WHERE n >= $load_points
  WINDOW s AS (PARTITION BY source, name, resource, variant)
), rest AS (
  SELECT name, resource, slope, base, r2, low, high, middle, n,
    median(bytes - base - slope * running) FILTER (3 * i <= n) AS early,
    median(bytes - base - slope * running) FILTER (3 * i > 2 * n) AS late,
    median(bytes - base - slope * running) FILTER (6 * i > 5 * n) - median(bytes - base - slope * running) FILTER (6 * i BETWEEN 4 * n AND 5 * n) AS last_rise,
    regr_r2(bytes - base - slope * running, i) AS trend, avg(running) FILTER (10 * i > 9 * n) AS last_load, arg_max(ref, i) AS ref
  FROM fitted
  GROUP BY source, name, resource, variant, slope, base, r2, low, high, middle, n
)
SELECT nullif(name, '') AS name, resource, n AS samples, (base + slope * low)::BIGINT AS low_bytes,
  (base + slope * high)::BIGINT AS high_bytes, r2 AS explained, (late - early)::BIGINT AS drift_bytes,
  r2 >= $load_explains AND slope * (high - low) >= $trend_bytes AND abs(late - early) <= greatest($level_share * middle, $level_bytes)
    AS follows,
  late - early >= greatest($trend_bytes, $level_share * middle) AND trend >= $load_explains / 2
    -- the middles of the first and of the last third are four sixths apart: what has come to rest lately was something that filled
    AND NOT (n >= $drift_readings AND last_rise < $drift_goes_on * (late - early) / 4) AS drifts, ref
FROM rest
WHERE high > 0 AND high >= $load_range * low AND last_load <= (low + high) / 2
ORDER BY follows OR drifts DESC, slope * (high - low) DESC LIMIT 1
