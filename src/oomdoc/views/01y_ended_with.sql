-- says: one row per life whose end a supervisor tells with a status of its own: below 128, no signal
-- scope: bundle
-- life: the start
-- source: where
-- line: which line
-- exit_code: the status
SELECT life, source, line, exit_code
FROM (
  SELECT r.life, r.source, r.line, x.exit_code
  FROM main.relation r
  JOIN process_exit x ON x.source = r.source AND x.line = r.line
  WHERE r.of_table = 'process_exit' AND r.whose = 'own' AND x.exit_code BETWEEN 1 AND 127
  UNION ALL
  SELECT r.life, c.source, c.line, c.exit_code
  FROM main.relation r
  JOIN container_end c ON c.source = r.source AND c.line = r.line
  WHERE r.of_table = 'container' AND c.by_itself AND NOT c.another_day
)
WHERE life IS NOT NULL
-- one statement, whole: never the place of one and the status of another
QUALIFY row_number() OVER (PARTITION BY life ORDER BY source, line, exit_code) = 1
