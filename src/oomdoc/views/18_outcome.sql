-- says: what became of each life of a server, established before any cause is asked for; no row for a log that is no server's
-- scope: bundle
-- start_id: engine start
-- outcome: refused (by a check of its own), died (of an error of its own, or with a status of its own), ended (from outside), degraded (a queue that lasts, a full pool, preemptions, a pause), stuck (work in hand, nothing done, or begun anew again and again), grew (memory that climbs), served, starting, not-told
-- ref: the line that shows it
-- first_line: where the life begins
WITH failed AS (
  SELECT start_id, kind, grade, source || ':' || line AS ref FROM failure_event WHERE grade >= 2
  QUALIFY row_number() OVER (PARTITION BY start_id ORDER BY least(grade, 3) DESC, line, grade DESC) = 1
), stat AS (
  SELECT s.start_id, x.source, x.line, x.running, x.waiting, x.generation_tokens_per_s + x.prompt_tokens_per_s AS tokens_per_s
  FROM engine_stat x JOIN engine_start s ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE x.running IS NOT NULL
), ending AS (
  -- the last lines alone are put in order
  SELECT t.*, source || ':' || line AS ref, row_number() OVER (PARTITION BY start_id ORDER BY line DESC) AS nth
  FROM stat t
  JOIN (SELECT start_id, (max(line, $still_lines))[-1] AS from_line FROM stat GROUP BY start_id) USING (start_id)
  WHERE line >= from_line
), still AS (
  SELECT start_id, min_by(ref, nth) AS ref FROM ending WHERE nth <= $still_lines GROUP BY start_id
  HAVING count(*) = $still_lines AND bool_and(coalesce((running > 0 OR waiting > 0) AND tokens_per_s = 0, false))
), silent AS (
  -- the executor waits for a worker, minute after minute, behind a statistics line with work in hand; no statistics follow. Where that line
  -- tells of nothing done two warnings say it, where it still tells of the seconds before the wait it takes more
  SELECT s.start_id, min(h.source || ':' || h.line) AS ref FROM ending b JOIN engine_start s USING (start_id)
  JOIN log_error h ON h.source = s.source AND h.line > b.line AND h.line <= s.last_line AND h.kind = 'hang'
  WHERE b.nth = 1 AND b.running > 0 GROUP BY s.start_id, b.tokens_per_s
  HAVING (count(*) >= $hang_warnings
    AND (coalesce(b.tokens_per_s, 0) = 0 OR count(DISTINCT coalesce(floor(h.t / 60), h.line)) >= $hang_minutes))
    -- a watchdog says once how long it has waited
    OR max(try_cast(regexp_extract(h.text, 'watchdog_timeout=(\d+)', 1) AS DOUBLE)) >= 60 * $hang_minutes
), waits AS (
  -- a start that goes nowhere: the front end waits on behind the last step, and the log ends so
  SELECT s.start_id, min(n.source || ':' || n.line) AS ref
  FROM engine_start s JOIN note n ON n.topic = 'waiting-for-engine' AND n.source = s.source AND n.line BETWEEN s.first_line AND s.last_line
  WHERE NOT s.served
    AND n.line > (
      SELECT coalesce(max(m.line), 0) FROM milestone m WHERE m.source = s.source AND m.line BETWEEN s.first_line AND s.last_line
    )
  GROUP BY s.start_id HAVING count(*) >= $start_wait_lines
), queue AS (
  -- a heap that was handed in at once and worked off is no queue that lasts, nor are the few that come in with the next step
  SELECT start_id, arg_max(source, waiting) || ':' || arg_max(line, waiting) AS ref
  FROM stat
  GROUP BY start_id
  HAVING count(*) >= $queue_lines AND avg((waiting > $queue_of_step * coalesce(running, 0))::INT) >= $queue_lasts
    AND NOT EXISTS (FROM scaled_up)
), status AS (
  -- a start whose process ended with a status of its own, whatever it said before: no signal, and no order from outside
  SELECT start_id, min(source || ':' || line) AS ref FROM failure_event
  WHERE own_status AND grade = 0 GROUP BY start_id
), outside AS (
  -- what ended it is bound to this life, or the only one there is
  SELECT r.life AS start_id, min(r.source || ':' || r.line) AS ref
  FROM main.relation r
  JOIN host_event h ON h.source = r.source AND h.line = r.line
  WHERE r.of_table = 'host_event' AND r.whose = 'own'
    AND h.kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill', 'ray-memory-kill', 'slurm-oom-kill')
  GROUP BY r.life
), cluster AS (
  SELECT coalesce(min(ref) FILTER (probe), min(ref)) AS ref, bool_and(by_itself) AS by_itself,
    CASE WHEN bool_and(life IS NOT NULL) THEN min(life) END AS life
  FROM (
    SELECT source || ':' || line AS ref, true AS probe, false AS by_itself, NULL AS life
    FROM cluster_event
    WHERE reason = 'Killing' AND regexp_matches(message, '(?i)probe|restarting|deadline|unhealthy|health ?check|in a row')
    UNION ALL SELECT ref, true, false, NULL FROM probe_course WHERE after = rises
    UNION ALL
    SELECT e.source || ':' || e.line, false, false, NULL
    FROM cluster_event e
    JOIN main.relation r ON r.of_table = 'cluster_event' AND r.source = e.source AND r.line = e.line
    WHERE e.reason = 'Evicted' AND r.whose = 'own'
      -- who makes nodes anew takes a pod down by plan (Karpenter: `Evicted pod: Drifted`): where one that served was started behind it, it was moved
      AND NOT (e.message LIKE 'Evicted pod: %' AND coalesce(e.t < (SELECT max(t) FROM engine_start WHERE served), false))
    UNION ALL SELECT c.source || ':' || c.line, false, by_itself, w.life FROM container_end c LEFT JOIN ended_with w USING (source, line)
      WHERE (last_reason IN ('OOMKilled', 'Error', 'Evicted') AND NOT orderly AND NOT another_day) OR reason IN ('OOMKilled', 'CrashLoopBackOff')
    -- who runs jobs ended one that had run for as long as it might
    UNION ALL SELECT source || ':' || line, false, false, NULL FROM note WHERE topic = 'time-limit-reached'
    -- a runtime's own line of the end, where nobody described the container since
    UNION ALL SELECT x.source || ':' || x.line, false, true, NULL
    FROM process_exit x
    JOIN main.relation r ON r.of_table = 'process_exit' AND r.source = x.source AND r.line = x.line AND r.whose = 'own'
    WHERE x.exit_code BETWEEN 1 AND 127 AND regexp_matches(x.name, ' \(\S+:\S+\)$'))
), trend AS (
  -- what was measured outweighs what a text says
  SELECT coalesce(greatest(m.stepped, m.climbing AND NOT coalesce(r.within_cache, false)), m.grows_said, false)
    OR coalesce(r.gains AND NOT coalesce(r.within_cache, false), false) OR coalesce(s.climbing, false) AS grows,
    coalesce(m.ref, m.said_ref, r.ref, s.ref) AS ref
  FROM memory_trend m, ratchet r, share_course s
)
SELECT s.start_id,
  CASE WHEN f.kind = 'startup-check' THEN 'refused' WHEN f.kind = 'host-kill' THEN 'ended' WHEN f.grade >= 3 THEN 'died'
       WHEN coalesce(f.ref, o.ref) IS NULL AND c.by_itself THEN 'died'
       WHEN coalesce(f.ref, o.ref, c.ref) IS NOT NULL THEN 'ended' WHEN coalesce(b.ref, w.ref, g.ref, a.ref) IS NOT NULL THEN 'stuck'
       WHEN (p.pressed AND v.ref IS NULL AND y.ref IS NULL) OR (q.start_id IS NOT NULL AND h.start_id IS NULL AND v.ref IS NULL)
         OR u.start_id IS NOT NULL THEN 'degraded' WHEN t.grows THEN 'grew'
       WHEN s.served THEN 'served' WHEN x.ref IS NOT NULL THEN 'died' WHEN s.marked AND s.last_milestone IS NOT NULL THEN 'starting' ELSE 'not-told' END AS outcome,
  coalesce(
    f.ref, o.ref, c.ref, b.ref, w.ref, g.ref, a.ref, CASE WHEN p.pressed AND v.ref IS NULL AND y.ref IS NULL THEN p.first_ref END,
    CASE WHEN h.start_id IS NULL AND v.ref IS NULL THEN q.ref END, u.ref, CASE WHEN t.grows THEN t.ref END, CASE WHEN NOT s.served THEN x.ref END
  ) AS ref, s.first_line
FROM engine_start s
LEFT JOIN failed f USING (start_id)
LEFT JOIN still b USING (start_id)
LEFT JOIN silent w USING (start_id)
LEFT JOIN waits g USING (start_id)
LEFT JOIN anew a USING (start_id)
LEFT JOIN status x USING (start_id)
  LEFT JOIN queue q USING (start_id)
  LEFT JOIN heap h USING (start_id)
  LEFT JOIN pressure_start p USING (start_id)
  LEFT JOIN pause u USING (start_id)
  LEFT JOIN outside o ON coalesce(o.start_id = s.start_id, true)
  -- an end that is known to be another life's is none of one that served
  LEFT JOIN cluster c ON coalesce(c.life = s.start_id, true) OR NOT s.served
    LEFT JOIN trend t ON true
  LEFT JOIN answered_wave v ON true
  LEFT JOIN finished_batch y ON true
WHERE s.engine AND s.start_id NOT IN (SELECT start_id FROM outlived)
QUALIFY row_number() OVER (PARTITION BY s.start_id ORDER BY o.start_id NULLS LAST, o.ref) = 1
ORDER BY s.start_id
