-- says: refusals of a start that began by itself, on a card that was looked at just before and was empty: nobody else was in its way
-- scope: bundle
-- source: log that shows it
-- line: of the refusal
WITH began AS (
  SELECT source, line, t FROM milestone WHERE name = 'engine-init' AND t IS NOT NULL
)
SELECT DISTINCT c.source, c.line
FROM startup_check c
JOIN began b ON b.source = c.source AND b.line < c.line
JOIN gpu_sample g ON g.source = c.source AND g.line < b.line AND g.used_bytes < $device_idle * g.total_bytes
WHERE c.name IN ('no-kv-blocks', 'kv-below-max-model-len', 'free-memory')
  AND NOT EXISTS (FROM began o WHERE o.source = c.source AND o.line BETWEEN g.line AND c.line AND o.line <> b.line)
  AND NOT EXISTS (FROM began o WHERE (o.source <> b.source OR o.line <> b.line) AND abs(o.t - b.t) <= $at_once_s)
