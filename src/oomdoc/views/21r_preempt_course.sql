-- says: whether requests were preempted while somebody looked, or only before: the course of the counter; no row where it was read too seldom
-- scope: bundle
-- readings: how often it was read, of the series that was read least
-- rises: readings at which it stood higher than at the one before
-- quiet: share of the readings after its last rise; 1 = it never rose
-- past: it rose once at most, and half of the readings come after, or it stands still for days: a counter does not go back, and tells of another time
-- value: where it stands
-- ref: its last rise, or its last reading
WITH reading AS (
  SELECT labels, CASE WHEN t IS NULL THEN source END AS text, t, source || ':' || line AS ref, value, lag(value) OVER w AS before,
    row_number() OVER w AS nth
  FROM metric WHERE name IN ('vllm:num_preemptions_total', 'vllm:num_preemptions') AND labels IS DISTINCT FROM 'delta'
  WINDOW w AS (PARTITION BY labels, CASE WHEN t IS NULL THEN source END ORDER BY t, source, line)
), series AS (
  SELECT count(*) AS readings, count(*) FILTER (value > before) AS rises,
    1 - coalesce(max(nth) FILTER (value > before), 0) / count(*) AS quiet, max(value) AS value,
    max(t) - max(t) FILTER (value > before) > $long_past_s AS over,
         coalesce(arg_max(ref, nth) FILTER (value > before), arg_max(ref, nth)) AS ref FROM reading GROUP BY labels, text
)
SELECT min(readings) AS readings, max(rises) AS rises, min(quiet) AS quiet,
       (max(rises) <= 1 AND min(quiet) >= $quiet_since OR coalesce(bool_and(over OR rises = 0), false)) AND NOT EXISTS (FROM preemption) AS past, max(value)::BIGINT AS value,
         arg_max(ref, value) AS ref
FROM series HAVING min(readings) >= $course_readings
