-- says: one row per failure or episode, the gravest first
-- scope: bundle
-- incident: i1, i2, ... in order of gravity
-- kind: device-oom, startup-check, host-kill, host-alloc, shm, error, exit, echo, pressure, restart
-- start_id: engine start; NULL for what only the host or the cluster saw
-- start_source: log of that start
-- source: where the first failure stands
-- line: its line
-- ref: source:line
-- t: when
-- text: the line
-- gravity: higher is graver: 40 a memory failure, 30 another failure, 20 a kill, 16 a failure that a later start got over before another one failed, or of a model that was replaced by one that fails, 15 pressure, 10 restarts, 5 only echoes
-- events: failure lines, echoes included
WITH ranked AS (
  SELECT *, coalesce(start_id, 'outside') AS place,
         row_number() OVER (PARTITION BY coalesce(start_id, 'outside') ORDER BY least(grade, 3) DESC, line, grade DESC, source) AS nth,
         count(*) OVER (PARTITION BY coalesce(start_id, 'outside')) AS events
  FROM failure_event
), first_of AS (
  SELECT r.* REPLACE (CASE WHEN named THEN 'shm' ELSE r.kind END AS kind, CASE WHEN named THEN 4 ELSE r.grade END AS grade)
  FROM (
    -- a library says that a call of the system failed, and right behind it which: what it was short of is the failure
    SELECT *, kind = 'error' AND EXISTS (
      FROM failure_event e
      WHERE e.kind = 'shm' AND e.source = r.source AND e.line BETWEEN r.line AND r.line + $traceback_lines_behind
    ) AS named
    FROM ranked r
    WHERE nth = 1
  ) r
), inside AS (
  SELECT count(*) FILTER (grade >= 2) AS real FROM first_of WHERE start_id IS NOT NULL
), overcome AS (
  -- after it another start of the same log came up, and a still later one failed by an error of its own and never did: that one is what the bundle is about
  SELECT DISTINCT f.start_id FROM first_of f JOIN engine_start a ON a.start_id = f.start_id
  JOIN engine_start b ON b.source = a.source AND b.first_line > a.last_line AND b.served
  JOIN engine_start c ON c.source = a.source AND c.first_line > b.last_line AND NOT c.served
  JOIN first_of l ON l.start_id = c.start_id AND l.grade >= 3
), named AS (
  SELECT s.start_id, s.source, s.first_line, s.served, lower(regexp_extract(arg_min(g.value, g.line), '[^/]+$')) AS model
  FROM engine_start s JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line AND g.flag = 'model'
  GROUP BY s.start_id, s.source, s.first_line, s.served
), replaced AS (
  -- another model was put in its place and never came up either, for an error of its own, and nobody went back to it: what fails today is the other
  SELECT DISTINCT f.start_id FROM first_of f JOIN named a ON a.start_id = f.start_id AND NOT a.served
  JOIN named c ON c.source = a.source AND c.first_line > a.first_line AND c.model <> a.model AND NOT c.served
  JOIN first_of l ON l.start_id = c.start_id AND l.grade >= 3
  WHERE NOT EXISTS (FROM named b WHERE b.source = a.source AND b.model = a.model AND b.first_line > c.first_line)
), failed AS (
  SELECT f.kind, f.grade, f.start_id, s.source AS start_source, f.source, f.line, f.t, f.text, events, coalesce(s.served, false) AS served,
         CASE WHEN f.start_id IN (FROM overcome UNION ALL FROM replaced) THEN 16 WHEN grade = 4 THEN 40 WHEN grade = 3 AND kind = 'device-oom' THEN 38
           WHEN grade = 3 THEN 30 WHEN grade = 2 THEN 20
           -- a start that never served and ended with a status of its own says nothing, and failed
           WHEN grade = 0 AND f.own_status AND NOT coalesce(s.served, false) AND f.start_id IS NOT NULL THEN 20 ELSE 5 END AS gravity
  FROM first_of f LEFT JOIN engine_start s USING (start_id)
  -- what the host saw belongs to an incident of the engine where there is one
  WHERE (f.start_id IS NOT NULL OR (SELECT real FROM inside) = 0)
    -- weak words in a server that came up are no incident
    AND (grade >= 2 OR NOT coalesce(s.served, false))
    AND NOT (grade = 0 AND (SELECT real FROM inside) > 0)
    -- what a caller or a check met is none of a server's that came up and went on
    AND NOT (grade = 0 AND NOT coalesce(s.engine, false) AND EXISTS (FROM engine_start u WHERE u.engine AND u.served))
), pressed AS (
  SELECT 'pressure' AS kind, p.start_id, s.source AS start_source, s.source,
    coalesce(regexp_extract(first_ref, ':(\d+)$', 1)::UINTEGER, s.first_line) AS line,
         first_t AS t, NULL AS text, samples AS events, true AS served, 15 AS gravity
  FROM pressure_start p
  JOIN engine_start s USING (start_id)
  WHERE pressed AND p.start_id NOT IN (SELECT start_id FROM failed WHERE start_id IS NOT NULL)
), restarted AS (
  SELECT 'restart' AS kind, NULL AS start_id, NULL AS start_source, source, line, NULL::DOUBLE AS t,
    concat_ws(' ', pod, last_reason, 'restarts ' || restarts) AS text,
         restarts AS events, false AS served, 10 AS gravity
  FROM container_end WHERE restarts > 0
    -- the end of a start, whoever tells it, says more than that there were restarts
    AND NOT EXISTS (FROM failed WHERE grade >= 2 OR (kind = 'exit' AND start_id IS NOT NULL))
    -- what runs again after its machine was started anew has no failure of its own
    AND NOT (with_machine AND (state = 'Running' OR reason IS NOT DISTINCT FROM 'Unknown')) AND NOT another_day
    -- an orderly end is none, unless a probe sent the signal; restarts without a reason say nothing beside a server that came up
    AND (EXISTS (FROM cluster_event WHERE reason = 'Killing' AND regexp_matches(message, '(?i)probe|restarting|deadline|unhealthy|health ?check|in a row'))
      OR (last_reason IS DISTINCT FROM 'Completed' AND NOT orderly
        AND (coalesce(last_reason, exit_code::VARCHAR, reason) IS NOT NULL OR NOT EXISTS (FROM engine_start WHERE served))))
  ORDER BY restarts DESC, source, line LIMIT 1
), everything AS (
  -- a line without a stamp is later than the stamped ones above it
  SELECT *, coalesce(t, max(t) OVER (PARTITION BY source ORDER BY line ROWS UNBOUNDED PRECEDING)) AS about
  FROM (SELECT * FROM failed UNION ALL BY NAME SELECT * FROM pressed UNION ALL BY NAME SELECT * FROM restarted)
)
SELECT 'i' || row_number() OVER (ORDER BY gravity DESC, served DESC, about DESC NULLS LAST, source, line DESC) AS incident,
       kind, start_id, start_source, source, line, source || ':' || line AS ref, t, text, gravity, events
FROM everything
ORDER BY gravity DESC, served DESC, about DESC NULLS LAST, source, line DESC
