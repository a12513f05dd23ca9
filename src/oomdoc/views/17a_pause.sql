-- says: stretches in the middle of a log in which requests run and no token comes or goes, or less than one a second of all together, with room in the pool, and then all goes on: the engine waits for something that is not memory, or those who write wait for a prompt that is computed; no row where there are none
-- scope: bundle
-- start_id: engine start
-- pauses: how many such stretches
-- lines: statistics lines of the longest
-- seconds: how long that one lasts; NULL where the log has no times
-- running: requests that run meanwhile
-- waiting: the most that wait at its end
-- peak: highest usage of the pool in it
-- tokens: tokens a second of all requests together, the most in it
-- ref: its first line
WITH slow AS (
  SELECT source, line FROM engine_stat WHERE running > 0 AND generation_tokens_per_s + prompt_tokens_per_s < $crawls
), stat AS (
  SELECT s.start_id, x.source, x.line, x.t, x.running, x.waiting, x.kv_used,
    x.generation_tokens_per_s + x.prompt_tokens_per_s AS tokens_per_s,
         row_number() OVER w AS place, lead(x.line) OVER w AS next_line
  FROM engine_stat x JOIN engine_start s ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE x.running IS NOT NULL AND x.generation_tokens_per_s IS NOT NULL AND x.prompt_tokens_per_s IS NOT NULL
    -- where no line says so there is no stretch: to number a million lines for that costs 1 s
    AND EXISTS (FROM slow)
  WINDOW w AS (PARTITION BY s.start_id ORDER BY x.line)
), marked AS (
  SELECT *, place - row_number() OVER (PARTITION BY start_id ORDER BY line) AS stretch
  FROM stat SEMI JOIN slow USING (source, line)
), moving AS (
  SELECT start_id, min(line) AS first_line, max(line) AS last_line FROM stat WHERE tokens_per_s >= $crawls GROUP BY start_id
), long AS (
  SELECT start_id, source, stretch, count(*) AS lines, max(t) - min(t) AS seconds, max(running) AS running, max(waiting) AS waiting,
    max(kv_used) AS peak, max(kv_used) - min(kv_used) AS moved, max(tokens_per_s) AS tokens, min(tokens_per_s) AS least,
         arg_min(source || ':' || line, line) AS ref, min(line) AS first_line, max(line) AS last_line, max(next_line) AS next_line
  FROM marked GROUP BY start_id, source, stretch
)
-- of each start the longest, whole: figures of one stretch never stand beside those of another
SELECT l.start_id, count(*) OVER (PARTITION BY l.start_id) AS pauses, l.lines, l.seconds, l.running, l.waiting, l.peak, l.tokens, l.ref
FROM long l JOIN moving m ON m.start_id = l.start_id
WHERE (
  l.lines >= $pause_lines
    -- the executor says each minute that it waits: where it does, no statistics come, and a single line may stand for minutes
    OR (SELECT count(*) FROM log_error h WHERE h.kind = 'hang' AND h.source = l.source AND h.line BETWEEN l.first_line AND l.next_line) >= $hang_warnings
-- blocks that are taken meanwhile are those of a prompt that is being computed: its tokens are counted at its end
-- and where others write meanwhile, a token now and then, they are held up by it
) AND (coalesce(l.moved < $pool_moves, true) OR l.running >= 2 AND l.least > 0) AND (l.peak < $pool_had_room OR l.peak < $pool_crowded AND l.waiting = 0) AND m.first_line < l.first_line AND m.last_line > l.last_line
QUALIFY row_number() OVER (PARTITION BY l.start_id ORDER BY l.lines DESC, l.first_line) = 1
ORDER BY l.start_id
