-- says: one row per start of an engine that a log shows, and one for the lines of a log before its first start
-- scope: bundle
-- start_id: source#number; number 0 = lines before the first marker
-- source: log that shows it
-- marked: whether a start marker was seen; false for excerpts that begin in the middle
-- first_line: first line of the start's range in that log
-- last_line: last line of the range
-- t: time of the marker
-- version: version that the marker names
-- served: the server came up: start-up complete, engine ready, or statistics lines
-- last_milestone: last step that was reached
-- engine: the log is an LLM server's: it holds a step, a setting, a figure or a frame that only engines print, or an allocator's message of torch
-- complete: the log tells a whole life: weights were loaded or the pool was sized, not only a front end's lines
WITH event AS (
  SELECT source, line, t, name, text, process, rank, pid,
         CASE name WHEN 'server-version' THEN 0 WHEN 'engine-init' THEN 1 ELSE 2 END AS class,
           row_number() OVER (PARTITION BY source, name, process, rank ORDER BY line) AS again
  FROM milestone
  -- a failure between two markers ends the first life, even if nothing else of it was logged
  -- a command that somebody typed begins what follows it
  UNION ALL BY NAME
  SELECT DISTINCT f.source, f.line, f.t, 'command' AS name, 0 AS class, 1 AS again
  FROM engine_flag f
  JOIN source s USING (source)
  WHERE f.origin = 'command' AND s.kind IN ('vllm-log', 'text-log')
  -- the status that a shell was asked for: the command before it has ended
  UNION ALL BY NAME
  SELECT source, line, t, 'status' AS name, 2 AS class, 1 AS again FROM process_exit WHERE name = 'of the typed command'
  -- a command line that is refused is of a process of its own, where a server had come up before it
  UNION ALL BY NAME
  SELECT e.source, e.line, e.t, 'usage' AS name, 0 AS class, 1 AS again
  FROM log_error e
  WHERE e.kind = 'bad-argument' AND regexp_matches(e.text, '^(unrecognized arguments|argument -|the following arguments are required|ambiguous option)')
    AND EXISTS (FROM milestone m WHERE m.source = e.source AND m.line < e.line AND m.name IN ('serving', 'engine-ready', 'shutdown'))
  UNION ALL BY NAME SELECT source, line, t, 'refused' AS name, 2 AS class, 1 AS again FROM startup_check
  UNION ALL BY NAME SELECT source, line, t, 'failed' AS name, 2 AS class, 1 AS again FROM oom
), has_version AS (
  SELECT source, bool_or(name = 'server-version') AS versioned FROM event GROUP BY source
), stepped AS (
  SELECT e.*, versioned, lag(class) OVER w AS before, lag(name) OVER w AS before_name, lag(line) OVER w AS before_line,
         e.t - lag(e.t) OVER w AS waited_s
  FROM event e JOIN has_version USING (source)
  WHERE class < 2
    OR name IN (
      'load-start', 'loaded', 'kv-available', 'kv-sized', 'kv-blocks', 'engine-ready', 'serving', 'shutdown', 'failed', 'refused', 'status'
    )
  WINDOW w AS (PARTITION BY e.source ORDER BY line, class)
), marker AS (
  SELECT source, line, t, CASE WHEN name IN ('server-version', 'engine-init', 'command') THEN text END AS text FROM stepped
  WHERE (class = 0 AND (before IS NULL OR before > 0)) OR
    -- a server says its version once: the API servers of one start say it together, so one minutes later is of the next, which was begun
    -- because the one before ended in silence. An error before any step stays with the start that got over it
    (
      name = 'server-version' AND before_name = 'server-version' AND waited_s >= $said_apart_s AND NOT EXISTS (
        FROM log_error l WHERE l.source = stepped.source AND l.line BETWEEN before_line AND stepped.line
      )
    ) OR
    -- a command that was typed again behind the error of the one before
    (
      name = 'command' AND EXISTS (
        FROM log_error l
        WHERE l.source = stepped.source AND l.line > before_line AND l.line < stepped.line AND l.exception IS NOT NULL
          AND l.kind NOT IN ('echo', 'client')
      )
    ) OR (NOT versioned AND class = 1 AND (before IS NULL OR before > 1))
    -- a start that was refused does not serve: who serves behind it is the next one
    OR (name IN ('kv-sized', 'engine-ready', 'serving') AND before_name = 'refused')
    -- nor does one whose engine said that it failed to start
    OR (name IN ('kv-sized', 'engine-ready', 'serving') AND before_name = 'failed' AND EXISTS (FROM log_error l WHERE l.source = stepped.source AND l.line < stepped.line AND l.kind = 'echo' AND l.text LIKE '%failed to start%'
      AND NOT EXISTS (
        FROM event m
        WHERE m.source = l.source AND m.line > l.line AND m.line < stepped.line
          AND (m.class < 2 OR m.name IN ('load-start', 'loaded', 'kv-sized', 'engine-ready', 'serving'))
      )))
    -- nor does a command that has ended go on
    OR before_name = 'status' AND name <> 'status'
    -- nor does it load anew: a rank that has loaded, or sized its pool, and does so again behind a refusal or a failure is of the next start
    OR (name IN ('load-start', 'loaded', 'kv-sized', 'kv-blocks') AND again > 1 AND before_name IN ('refused', 'failed'))
    -- nor does a process have two numbers: behind a server that had come up, the same part with another pid is of the next start
    OR (name = 'loaded' AND NOT versioned AND before_name IN ('serving', 'engine-ready', 'shutdown') AND EXISTS (
      FROM milestone m
      WHERE m.source = stepped.source AND m.line < stepped.line AND m.process = stepped.process
        AND m.rank IS NOT DISTINCT FROM stepped.rank AND m.pid <> stepped.pid))
), log AS (
  SELECT source, min(line) AS lo, max(line) AS hi FROM (
    SELECT source, line FROM milestone UNION ALL SELECT source, line FROM oom UNION ALL SELECT source, line FROM startup_check
    UNION ALL
    SELECT source, line
    FROM log_error
    UNION ALL
    SELECT source, line
    FROM engine_stat
    UNION ALL
    SELECT source, line
    FROM preemption
    UNION ALL SELECT source, line FROM process_exit UNION ALL SELECT source, line FROM engine_figure
    UNION ALL SELECT source, line FROM crash_step UNION ALL SELECT source, line FROM frame
  ) WHERE source NOT IN (SELECT source FROM source WHERE kind NOT IN ('vllm-log', 'text-log')) GROUP BY source
), ranged AS (
  SELECT source, true AS marked, line AS first_line, t, text,
         row_number() OVER w AS number, coalesce(lead(line) OVER w - 1, 4294967295)::UINTEGER AS last_line
  FROM marker WINDOW w AS (PARTITION BY source ORDER BY line)
  UNION ALL BY NAME
  SELECT log.source, false AS marked, 0 AS first_line, NULL AS t, NULL AS text, 0 AS number,
         coalesce(min(marker.line) - 1, 4294967295)::UINTEGER AS last_line
  FROM log LEFT JOIN marker ON marker.source = log.source
  GROUP BY log.source, log.lo HAVING min(marker.line) IS NULL OR log.lo < min(marker.line)
), reached AS (
  SELECT r.source, r.number, bool_or(m.name IN ('engine-ready', 'serving')) AS up, arg_max(m.name, m.line) AS last_milestone,
    bool_or(m.name IN ('loaded', 'weights-read', 'kv-sized', 'kv-blocks', 'kv-available')) AS complete,
         any_value(m.text) FILTER (m.name = 'engine-init') AS init
  FROM ranged r JOIN milestone m ON m.source = r.source AND m.line BETWEEN r.first_line AND r.last_line
  GROUP BY ALL
), sign AS (
  SELECT DISTINCT r.source, r.number FROM ranged r JOIN (
    SELECT source, line
    FROM milestone
    UNION ALL
    SELECT source, line
    FROM engine_flag
    UNION ALL
    SELECT source, line
    FROM engine_figure
    UNION ALL
    SELECT source, line
    FROM engine_stat
    UNION ALL
    SELECT source, line
    FROM startup_check
    UNION ALL
    SELECT source, line
    FROM preemption
    UNION ALL
    SELECT source, line
    FROM crash_step
    UNION ALL
    SELECT source, line
    FROM oom
    UNION ALL SELECT source, line FROM frame WHERE file ILIKE '%vllm%'
  ) x ON x.source = r.source AND x.line BETWEEN r.first_line AND r.last_line
), counted AS (
  SELECT r.source, r.number, count(*) AS stats
  FROM ranged r JOIN engine_stat s ON s.source = r.source AND s.line BETWEEN r.first_line AND r.last_line GROUP BY ALL
)
SELECT r.source || '#' || r.number AS start_id, r.source, r.marked, r.first_line, r.last_line, r.t,
       coalesce(regexp_extract(r.text, '\d+\.\d+[\w.+]*'), nullif(regexp_extract(init, '\d+\.\d+[\w.+]*'), '')) AS version,
       coalesce(up, false) OR coalesce(stats, 0) > 0 AS served, last_milestone, sign.number IS NOT NULL AS engine,
         coalesce(complete, false) AS complete
FROM ranged r
LEFT JOIN reached USING (source, number)
LEFT JOIN counted USING (source, number)
LEFT JOIN sign ON sign.source = r.source AND sign.number = r.number
ORDER BY r.source, r.number
