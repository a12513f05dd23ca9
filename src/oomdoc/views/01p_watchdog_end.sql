-- says: one row per end by a signal that the server's own watchdog asked for: it had waited for a step for as long as it may, and killed what hung; no row where a host is known to have had next to nothing left, for whose sake another process may have gone
-- scope: bundle
-- source: log
-- line: of the end
-- waited_s: how long it had waited, seconds
-- ref: the watchdog's word
SELECT x.source, x.line, max(try_cast(regexp_extract(h.text, 'watchdog_timeout=(\d+)', 1) AS DOUBLE)) AS waited_s, max_by(h.source || ':' || h.line, h.line) AS ref
FROM process_exit x
JOIN log_error h ON h.source = x.source AND x.line BETWEEN h.line AND h.line + $watchdog_lines AND h.kind = 'hang' AND h.text LIKE '%watchdog_timeout=%'
WHERE x.exit_code IN (-9, -6, 137, 134)
  AND NOT EXISTS (SELECT source FROM process_memory WHERE resource = 'host-available' GROUP BY source, name HAVING min(bytes) <= $left_of_it * max(bytes))
GROUP BY x.source, x.line
ORDER BY x.source, x.line
