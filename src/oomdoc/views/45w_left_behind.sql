-- says: a process of the server's own earlier life that still holds device memory after a later start began: whoever starts finds it there; no row otherwise
-- scope: bundle
-- pid: as both the log and the list of processes tell it
-- name: of the process
-- used_bytes: what it holds, of all devices
-- start_id: the later start, which never came up
-- since_ref: where the earlier life tells of it
-- ref: where the list has it
WITH own AS (
  SELECT s.source, s.start_id, s.first_line, m.pid, min(m.source || ':' || m.line) AS ref
  FROM engine_start s
  JOIN (SELECT source, line, pid FROM milestone UNION ALL SELECT source, line, pid FROM engine_figure) m
    ON m.source = s.source AND m.line BETWEEN s.first_line AND s.last_line
  WHERE m.pid > 1
  GROUP BY ALL
), held AS (
  SELECT t, pid, any_value(name) AS name, sum(used_bytes)::BIGINT AS used_bytes, min(source || ':' || line) AS ref
  FROM gpu_process WHERE t IS NOT NULL AND used_bytes > 0 GROUP BY ALL
)
SELECT h.pid, h.name, h.used_bytes, n.start_id, o.ref AS since_ref, h.ref
FROM own o
JOIN held h USING (pid)
JOIN engine_start n ON n.source = o.source AND n.first_line > o.first_line AND NOT n.served AND n.t < h.t
WHERE NOT EXISTS (FROM own again WHERE again.pid = o.pid AND again.start_id = n.start_id)
QUALIFY row_number() OVER (ORDER BY h.used_bytes DESC, h.t DESC, n.first_line DESC) = 1
