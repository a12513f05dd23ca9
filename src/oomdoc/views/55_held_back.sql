-- says: what holds a server back that is neither its memory nor its engine: a limit on processors, a link that is full; no row where nothing of it was measured
-- scope: bundle
-- periods: scheduling periods of its memory group between two readings, or since its start
-- throttled: share of them in which its processes were stopped until the next, 0..1
-- throttled_ref: where
-- link_bytes_s: what a link can carry, bytes per second
-- carried_bytes_s: what it carries, or what a read of the model's files gives, whichever is more; bytes per second
-- link_share: that as a share of the link
-- link_ref: where
WITH told AS (
  SELECT source, topic, value, row_number() OVER (PARTITION BY source, topic ORDER BY line) AS nth, line
  FROM note
  WHERE topic IN ('cpu-periods', 'cpu-throttled')
), stretch AS (
  SELECT p.source, p.line, CASE WHEN p.value >= lag(p.value) OVER w THEN p.value - lag(p.value) OVER w ELSE p.value END AS periods,
    CASE WHEN p.value >= lag(p.value) OVER w THEN t.value - lag(t.value) OVER w ELSE t.value END AS throttled
  FROM told p
  JOIN told t ON t.source = p.source AND t.nth = p.nth AND t.topic = 'cpu-throttled'
  WHERE p.topic = 'cpu-periods'
  WINDOW w AS (PARTITION BY p.source ORDER BY p.nth)
), box AS (
  -- the same of a container, as an exporter tells it: of the one that serves, or of the only one that may
  SELECT labels, name LIKE '%throttled%' AS stopped, value, source, line,
    row_number() OVER (PARTITION BY labels, name ORDER BY t, source, line) AS nth
  FROM metric
  WHERE name IN ('container_cpu_cfs_periods_total', 'container_cpu_cfs_throttled_periods_total')
), box_stretch AS (
  SELECT t.source, t.line, CASE WHEN p.value >= lag(p.value) OVER w THEN p.value - lag(p.value) OVER w ELSE p.value END AS periods,
    CASE WHEN p.value >= lag(p.value) OVER w THEN t.value - lag(t.value) OVER w ELSE t.value END AS throttled
  FROM box p JOIN box t ON t.labels = p.labels AND t.nth = p.nth AND t.stopped
  WHERE NOT p.stopped
    AND ((SELECT count(DISTINCT labels) FROM box) = 1
      OR regexp_extract(p.labels, '\bpod="([^"]*)"', 1) IN (SELECT pod FROM container WHERE serves OR gpus > 0)
      OR regexp_extract(p.labels, '\bcontainer="([^"]*)"', 1) IN (SELECT name FROM container WHERE serves OR gpus > 0))
  WINDOW w AS (PARTITION BY p.labels ORDER BY p.nth)
), held AS (
  SELECT periods, throttled / periods AS throttled, source || ':' || line AS ref
  FROM (FROM stretch UNION ALL FROM box_stretch)
  WHERE periods >= $throttle_periods AND throttled BETWEEN 0 AND periods
  ORDER BY throttled / periods DESC, ref
  LIMIT 1
), link AS (
  -- a host has several: the one that is told last is the one that is asked about
  SELECT arg_max(value, line) FILTER (topic = 'link-speed') AS speed, max(value) FILTER (topic IN ('link-rate', 'read-rate')) AS carried,
    max(source || ':' || line) FILTER (topic = 'link-speed') AS ref
  FROM note
  WHERE topic IN ('link-speed', 'link-rate', 'read-rate')
)
SELECT held.periods::BIGINT AS periods, held.throttled, held.ref AS throttled_ref, link.speed AS link_bytes_s,
  link.carried AS carried_bytes_s, link.carried / link.speed AS link_share, link.ref AS link_ref
FROM link LEFT JOIN held ON true WHERE held.periods IS NOT NULL OR link.speed IS NOT NULL
