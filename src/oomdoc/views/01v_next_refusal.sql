-- says: refusals that are another start's: one behind the death of a server that had come up in the same log, by another process, where no head tells the two starts apart
-- scope: bundle
-- source: log that shows it
-- line: of the refusal
SELECT DISTINCT c.source, c.line
FROM startup_check c
JOIN engine_start s ON s.source = c.source AND c.line BETWEEN s.first_line AND s.last_line
JOIN milestone m ON m.source = c.source AND m.name = 'serving' AND m.line BETWEEN s.first_line AND c.line
JOIN log_error e ON e.source = c.source AND e.line BETWEEN m.line AND c.line
WHERE e.pid <> c.pid AND e.kind NOT IN ('echo', 'client', 'network', 'bad-argument')
