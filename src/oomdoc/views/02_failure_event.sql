-- says: one row per line that tells of a failure, echoes included
-- scope: bundle
-- source: where
-- line: which line
-- t: when
-- process: process tag
-- rank: worker rank
-- kind: device-oom, startup-check, host-kill, host-alloc, shm, error, exit, echo
-- grade: 4 an explicit message about memory, 3 another explicit error, 2 a process that was killed, 1 weak, 0 an echo
-- text: head of the message
-- start_id: engine start it belongs to; NULL outside engine logs
-- own_status: a process ended with a status of its own: no signal, and no order from outside
WITH said AS (
  SELECT source, line, t, process, rank, 'device-oom' AS kind, 4 AS grade, text, false AS unknown_status, false AS waits FROM oom
  UNION ALL SELECT source, line, t, process, rank, 'startup-check', 4, text, false, false FROM startup_check
  UNION ALL SELECT source, line, t, process, rank,
    CASE kind WHEN 'host-memory' THEN 'host-alloc' WHEN 'shm' THEN 'shm' WHEN 'memory' THEN 'device-oom'
      ELSE CASE WHEN kind IN ('echo', 'client') THEN 'echo' ELSE 'error' END END,
    CASE kind WHEN 'host-memory' THEN 4 WHEN 'shm' THEN 4 WHEN 'memory' THEN 3 WHEN 'echo' THEN 0 WHEN 'client' THEN 0 WHEN 'hang' THEN 1
      ELSE 3 END,
    concat_ws(': ', exception, text), false, kind IS NOT DISTINCT FROM 'hang' FROM log_error
  UNION ALL SELECT source, line, t, process, rank, 'exit',
    -- beside the log an exit status of 0 is no failure; in it a worker that ends with 0 follows from one
    -- what the server's own watchdog killed had hung before
    CASE WHEN (source, line) IN (SELECT (source, line) FROM watchdog_end) THEN 0 WHEN exit_code IN (-9, -7, -11, -6, 137) THEN 2 WHEN exit_code = 0 AND source NOT IN (SELECT source FROM engine_start) THEN -1
      ELSE 0 END,
    concat('process ', name, ' ended', ' with exit code ' || exit_code), exit_code IS NULL, false FROM process_exit
  -- an engine shows the step that it was at only when that failed
  UNION ALL SELECT source, line, t, process, rank, 'echo', 0, 'the engine hit an exception in this step, which it dumps', false, false FROM crash_step
  -- calls of a traceback behind which no error stands, and then another start: what it failed of is lost
  UNION ALL SELECT f.source, max(f.line), NULL, NULL, NULL, 'echo', 0, 'the engine hit an exception, of which the calls are kept and the error is not', false, false
  FROM frame f
  JOIN engine_start s ON s.source = f.source AND f.line BETWEEN s.first_line AND s.last_line AND s.engine AND NOT s.served
  WHERE EXISTS (FROM engine_start n WHERE n.source = s.source AND n.first_line > s.last_line)
  GROUP BY f.source, s.start_id, s.last_line
  HAVING NOT EXISTS (FROM log_error e WHERE e.source = f.source AND e.line BETWEEN max(f.line) AND s.last_line)
    AND NOT EXISTS (FROM oom o WHERE o.source = f.source AND o.line BETWEEN max(f.line) AND s.last_line)
  UNION ALL SELECT g.source, g.line, g.t, NULL, NULL, 'exit', 0, concat('the log ends here (', g.milestone, '), and another start followed'), false, false
  FROM given_up g
  UNION ALL SELECT e.source, e.line, NULL, NULL, NULL, 'exit', 0, concat('the container ended with exit code ', e.exit_code), false, false
  FROM ended_with e JOIN container_end c ON c.source = e.source AND c.line = e.line
  UNION ALL
  SELECT h.source, h.line, h.t, h.process, NULL, m.kind,
    CASE WHEN h.kind = 'cgroup-oom-count' AND coalesce(h.count, 0) = 0 THEN -1
      -- somebody else was ended because the whole host was full
      WHEN m.kind = 'host-kill' AND EXISTS (FROM main.relation r WHERE r.of_table = 'host_event' AND r.whose = 'near' AND r.source = h.source AND r.line = h.line)
        THEN -1 ELSE m.grade END, h.text, false, false
  FROM host_event h JOIN (VALUES
    ('cgroup-oom-kill', 'host-kill', 4), ('node-oom-kill', 'host-kill', 4), ('oom-kill', 'host-kill', 4),
      ('slurm-oom-kill', 'host-kill', 4), ('cgroup-oom-count', 'host-kill', 4), ('ray-memory-kill', 'host-kill', 4),
    ('bus-error', 'shm', 4), ('shm-full', 'shm', 4), ('host-alloc-failed', 'host-alloc', 4), ('pinned-alloc-failed', 'host-alloc', 4),
      ('swap-space', 'host-alloc', 3),
    ('worker-died', 'exit', 2), ('killed-by-operator', 'exit', 2), ('segfault', 'error', 2), ('reboot', 'error', 2), ('xid', 'error', 1)
  ) m(says, kind, grade) ON m.says = h.kind
), told AS (
  SELECT source, line, t, process, rank, kind,
    -- a worker that died with an unknown status follows from an error; where none is told, its death is the failure. In a log to which
    -- workers write themselves the error would stand; one of a start without them may only lack it
    CASE WHEN (source, line) IN (SELECT (source, line) FROM wrapped) THEN 0
         WHEN line < work_line OR line > stop_line THEN 0  -- survived, or what an orderly end brings with it
         -- a notice that somebody is waited for is over with the next step of the same start
         WHEN waits AND EXISTS (FROM milestone m WHERE m.source = graded.source AND m.line > graded.line AND m.line <= graded.last_line) THEN 0
         WHEN unknown_status AND gravest < 2 AND (served OR workers_speak) THEN 2
         -- the engine's own words for its end follow from an error; where no log shows one, its end is what failed. That it is dead is also said when somebody stops it
         WHEN kind = 'echo' AND gravest_of_all < 2
           AND (regexp_matches(text, '(?i)fatal error|RPC call to .* timed out|failed to start|initialization failed|hit an exception|loop has errored')
                OR (
                  ended IS DISTINCT FROM 'stopped' AND regexp_matches(text, '(?i)EngineDead|already dead|engine dead|loop is not running')
                )) THEN 3
         -- nothing in its log says why it ended, and its supervisor tells the status that it ended with
         WHEN supervised AND gravest < 2 THEN 3
         WHEN gravest < 2 AND (source, line) IN (SELECT (source, line) FROM given_up) AND kind = 'exit' THEN 3
         ELSE grade END AS grade, text, start_id
  FROM (
    SELECT said.*, coalesce(r.life, s.start_id) AS start_id, s.served, r.life IS NOT NULL AS supervised, s.last_line, l.work_line, l.stop_line, l.ended, max(grade) OVER (PARTITION BY coalesce(r.life, s.start_id)) AS gravest,
      max(grade) OVER () AS gravest_of_all,
      said.unknown_status
        AND EXISTS (FROM milestone m WHERE m.source = said.source AND m.line BETWEEN s.first_line AND s.last_line AND m.process ILIKE '%worker%') AS workers_speak
    FROM said
    LEFT JOIN ended_with r ON said.kind = 'exit' AND r.source = said.source AND r.line = said.line
    LEFT JOIN engine_start s ON s.source = said.source AND said.line BETWEEN s.first_line AND s.last_line
    LEFT JOIN life l ON l.start_id = s.start_id
    WHERE grade >= 0 AND coalesce(r.life, s.start_id, '') NOT IN (SELECT start_id FROM outlived)
  ) graded
)
SELECT e.* REPLACE (coalesce(e.start_id, r.life) AS start_id),
  e.kind = 'exit' AND regexp_matches(e.text, 'ended with exit code ([1-9]\d?|1[01]\d|12[0-7])$') AS own_status
FROM told e
-- a kill that is the own of a life which tells of no failure itself is that life's, where another life does tell of one
LEFT JOIN (
  SELECT source, line, life FROM main.relation
  WHERE of_table = 'host_event' AND whose = 'own' AND life NOT IN (SELECT start_id FROM told WHERE start_id IS NOT NULL AND grade >= 2)
    AND EXISTS (FROM told WHERE start_id IS NOT NULL AND grade >= 2)
) r ON e.kind = 'host-kill' AND e.start_id IS NULL AND r.source = e.source AND r.line = e.line
ORDER BY e.source, e.line
