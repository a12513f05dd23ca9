-- says: one row per start that was over in the middle of it without a word: its own log ends there, while a later log is of another start of the same model that came up, or one start after the other in it gets as far and no further
-- scope: bundle
-- life: the start that was over
-- source: its log
-- line: its last line that is known
-- milestone: the last step that it shows
-- t: when
-- later: the start that followed
WITH named AS (
  SELECT source, min_by(value, line) AS model FROM main.engine_flag WHERE flag = 'model' GROUP BY source
), step AS (
  SELECT s.start_id, max(m.t) AS t, max(m.line) AS line FROM engine_start s
  JOIN main.milestone m ON m.source = s.source AND m.line BETWEEN s.first_line AND s.last_line
  GROUP BY s.start_id
)
SELECT a.start_id AS life, a.source, p.line, a.last_milestone AS milestone, p.t, min_by(b.start_id, b.t) AS later
FROM engine_start a
JOIN main.life l ON l.start_id = a.start_id AND l.ended = 'open'
JOIN step p ON p.start_id = a.start_id
JOIN named n ON n.source = a.source
JOIN named o ON o.model = n.model
JOIN engine_start b ON b.source = o.source AND b.served AND b.marked AND b.t > p.t
WHERE a.marked AND NOT a.served AND a.last_milestone IN ('load-start', 'load-progress', 'loaded', 'kv-available', 'kv-sized', 'kv-blocks', 'capture-start', 'capture-progress')
  AND NOT EXISTS (FROM engine_start c WHERE c.source = a.source AND c.first_line > a.first_line)
GROUP BY ALL
UNION ALL
-- or the same log shows one start after the other that gets as far as the cache and no further: each was over when the next began
SELECT a.start_id, a.source, p.line, a.last_milestone, p.t, min_by(c.start_id, c.first_line)
FROM engine_start a
JOIN step p ON p.start_id = a.start_id
JOIN engine_start c ON c.source = a.source AND c.first_line > a.first_line AND c.marked
WHERE a.marked AND NOT a.served AND a.last_milestone = 'kv-available'
  AND (SELECT count(*) FROM engine_start x WHERE x.source = a.source AND x.marked AND NOT x.served AND x.last_milestone = a.last_milestone) > $starts_in_a_row
GROUP BY ALL
