-- says: one row per start that failed, where the last start of the same log came up, has worked since then for more than half a day (where a check refused the start, for more than an hour of its own), and has not failed: what is asked about today is not that
-- scope: bundle
-- start_id: the start that failed
-- source: its log
-- first_line: its first line
-- last_line: its last line
-- line: the failure
-- t: when
-- later: the start that came up
-- hours: from the failure to the last that is known of the later one's work
WITH said AS (
  SELECT source, line, t, true AS refused FROM startup_check UNION ALL SELECT source, line, t, false FROM oom
  UNION ALL SELECT source, line, t, false FROM log_error
), failed AS (
  SELECT a.start_id, a.source, a.first_line, a.last_line, min(f.line) AS line, max(f.t) AS t, bool_or(f.refused) AS refused
  FROM engine_start a
  JOIN said f ON f.source = a.source AND f.line BETWEEN a.first_line AND a.last_line
  -- what stands before the first marker may be the end of any life, unless it tells its own settings; a check refuses a start and nothing else
  WHERE NOT a.served AND (a.marked OR f.refused OR EXISTS (FROM engine_flag g WHERE g.source = a.source AND g.line BETWEEN a.first_line AND a.last_line AND g.origin = 'logged'))
  GROUP BY ALL
), latest AS (
  SELECT b.start_id, b.source, b.first_line, b.t FROM engine_start b JOIN main.life l ON l.start_id = b.start_id AND l.ended IN ('open', 'stopped')
  WHERE b.served AND NOT EXISTS (FROM engine_start c WHERE c.source = b.source AND c.first_line > b.first_line)
), worked AS (
  SELECT b.start_id, b.source, b.first_line, max(x.t) AS t, coalesce(b.t, min(x.t)) AS begun FROM latest b JOIN engine_stat x ON x.source = b.source AND x.line >= b.first_line
  GROUP BY b.start_id, b.source, b.first_line, b.t
)
SELECT f.start_id, f.source, f.first_line, f.last_line, f.line, f.t, w.start_id AS later, (w.t - f.t) / 3600 AS hours
FROM failed f
JOIN worked w ON w.source = f.source AND w.first_line > f.last_line AND (w.t - f.t > $another_day OR (f.refused AND w.t - greatest(w.begun, f.t) > $refusal_over))
