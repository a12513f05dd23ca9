-- says: the server's log breaks off at work, and its container is one that the kubelet found gone when the machine was back: the machine went down under it; no row where that is not so
-- scope: bundle
-- silent_s: from the log's last statistics line to the moment at which the container was found gone
-- running: requests that ran in that line
-- seen_ref: that line
-- ref: the container
WITH ending AS (
  SELECT source, max(t) AS t, arg_max(running, line) AS running, arg_max(source || ':' || line, line) AS ref
  FROM engine_stat WHERE t IS NOT NULL GROUP BY source
)
SELECT x.ended_t - e.t AS silent_s, e.running, e.ref AS seen_ref, c.source || ':' || c.line AS ref
FROM container_end c
JOIN container x USING (source, line)
JOIN ending e ON x.ended_t - e.t BETWEEN 0 AND $machine_back_s
WHERE c.with_machine
  -- nothing of its own was the last word
  AND NOT EXISTS (FROM log_error l WHERE l.source = e.source AND l.t > e.t - $machine_back_s AND l.kind NOT IN ('client', 'echo'))
ORDER BY silent_s LIMIT 1
