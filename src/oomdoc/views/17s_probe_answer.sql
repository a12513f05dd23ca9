-- says: what the probe got for which a server was ended, and whether the server was at work then; no row where no probe failed
-- scope: bundle
-- status: HTTP status of an error that the server answered with; NULL = none is told
-- timed_out: no answer came within the probe's time
-- running: most requests that ran at once; NULL = nobody says
-- waiting: most that waited
-- timeout_s: seconds that the liveness probe waits for an answer
-- period_s: seconds between two of its questions
-- misses: failures in a row after which the server is ended
-- at_work: the server had come up when the probe failed, and answered or was too slow; false = it was loading or gone; NULL = nobody says
-- ref: where
WITH told AS (
  SELECT coalesce(w.probe_text, '') AS text, coalesce(w.probe_ref, c.ref) AS ref
  FROM workload w
  LEFT JOIN probe_course c ON true
  WHERE w.probe_failures > 0 OR c.ref IS NOT NULL
), answered AS (
  SELECT ref, try_cast(nullif(regexp_extract(text, '(?i)(?:\bstatus(?:[ _]?code)?\W{0,3}|\bHTTP(?:/[\d.]+)? |\b(?:returned|got) )([45]\d\d)\b', 1), '') AS INTEGER) AS status,
    regexp_matches(text, '(?i)deadline exceeded|time[d-]? ?out|awaiting headers') AS timed_out,
    -- a status of 5xx alone is what some servers answer while they load
    regexp_matches(text, '(?i)\bbusy\b|queue|overload|too many|capacity') AS busy,
    regexp_matches(text, '(?i)refused|reset by peer|no route to host|unreachable|\bEOF\b') AS refused
  FROM told
), life AS (
  SELECT coalesce(bool_or(marked AND NOT served), false) AS unserved, coalesce(bool_or(served), false) AS served FROM engine_start
), load AS (
  SELECT max(running) AS running, max(waiting) AS waiting FROM engine_stat
), rule AS (
  SELECT any_value(liveness) AS liveness FROM container
)
SELECT a.status, a.timed_out, o.running, o.waiting,
  try_cast(regexp_extract(r.liveness, 'timeout=(\d+)s', 1) AS INTEGER) AS timeout_s,
  try_cast(regexp_extract(r.liveness, 'period=(\d+)s', 1) AS INTEGER) AS period_s,
  try_cast(regexp_extract(r.liveness, '#failure=(\d+)', 1) AS INTEGER) AS misses,
  CASE WHEN a.refused THEN false
    WHEN l.served OR o.running > 0 THEN a.status IS NOT NULL OR a.timed_out OR NOT l.unserved
    WHEN l.unserved THEN false
    WHEN a.timed_out OR a.busy THEN true END AS at_work, a.ref
FROM answered a, life l, load o, rule r
