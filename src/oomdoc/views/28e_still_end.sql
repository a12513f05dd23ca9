-- says: the end of a server's statistics lines in which work is in hand and no token comes or goes; no row where the last of them moved, or counts no tokens
-- scope: incident
-- running: requests that run at the last line
-- waiting: that wait there
-- samples: how many such lines in a row the log ends with
-- ref: the first of them
WITH stat AS (
  SELECT source, line, running, coalesce(waiting, 0) AS waiting,
    -- lines that count who runs and no tokens do not say that none were made
    coalesce(generation_tokens_per_s, prompt_tokens_per_s) IS NOT NULL AND coalesce(generation_tokens_per_s, 0) + coalesce(prompt_tokens_per_s, 0) = 0
      AND coalesce(running > 0 OR waiting > 0, false) AS still
  FROM seen.engine_stat
), moved AS (
  SELECT source, coalesce(max(line) FILTER (NOT still), 0) AS line FROM stat GROUP BY source
)
SELECT arg_max(s.running, s.line) AS running, arg_max(s.waiting, s.line) AS waiting, count(*) AS samples, s.source || ':' || min(s.line) AS ref
FROM stat s JOIN moved m ON m.source = s.source AND s.line > m.line
GROUP BY s.source
ORDER BY samples DESC, s.source LIMIT 1
