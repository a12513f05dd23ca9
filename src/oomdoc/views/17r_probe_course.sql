-- says: restarts of a container as its counter tells them, and whether probes failed right before each; no row where no counter of restarts rose
-- scope: bundle
-- rises: times that the counter of restarts rose
-- after: of them those with failed probes in the readings right before
-- failures: probes that failed there
-- elsewhere: probes that failed at other times
-- kv_used: highest usage of the KV pool recorded in those readings, 0..1; NULL = not told
-- ref: where the restarts rose last
WITH reading AS (
  -- place: time, or the line in a text without times
  SELECT CASE WHEN name LIKE 'kube%' THEN 'restart' ELSE 'probe' END AS kind, CASE WHEN t IS NULL THEN source END AS text, source, line,
    coalesce(t, line) AS place, value, lag(value) OVER w AS before, coalesce(t, line) - lag(coalesce(t, line)) OVER w AS gap
  FROM metric
  WHERE name IN ('kube_pod_container_status_restarts_total', 'probe_failures_total')
    OR (name = 'prober_probe_total' AND labels LIKE '%failed%' AND labels NOT ILIKE '%readiness%')
  WINDOW w AS (PARTITION BY name, labels, CASE WHEN t IS NULL THEN source END ORDER BY t, line)
), rose AS (
  SELECT *, value - before AS more FROM reading WHERE value > before
), span AS (
  SELECT text, median(gap) * $readings_before AS length FROM reading WHERE gap > 0 GROUP BY text
), restart AS (
  SELECT r.source, r.line, r.place, r.text, s.length,
    (
      SELECT sum(p.more)
      FROM rose p
      WHERE p.kind = 'probe' AND p.text IS NOT DISTINCT FROM r.text AND p.place BETWEEN r.place - s.length AND r.place
    ) AS failures
  FROM rose r JOIN span s ON s.text IS NOT DISTINCT FROM r.text WHERE r.kind = 'restart'
)
SELECT count(*) AS rises, count(failures) AS after, coalesce(sum(failures), 0)::BIGINT AS failures,
       ((SELECT coalesce(sum(more), 0) FROM rose WHERE kind = 'probe') - coalesce(sum(failures), 0))::BIGINT AS elsewhere,
       (
         SELECT max(e.kv_used)
         FROM engine_stat e
         JOIN restart x ON e.source = x.source AND coalesce(e.t, e.line) BETWEEN x.place - x.length AND x.place
       ) AS kv_used, max_by(source || ':' || line, place) AS ref
FROM restart HAVING count(*) > 0 AND EXISTS (FROM reading WHERE kind = 'probe')
