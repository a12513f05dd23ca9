-- says: what Kubernetes (or a supervisor) says of the server: restarts, probes, exit codes, scaling; no row where nobody says
-- scope: bundle
-- restarts: most restarts of a container
-- restart_ref: where
-- bad_ends: containers whose last end was no orderly one (0 and 143, SIGTERM, are; 255 for a reason Unknown is the end of the machine); held back from restarting counts
-- probe_failures: liveness or startup probe failures; of readiness, where a controller ends what is not ready; by events, or by the kubelet's own counter where it has as many as the restarts took
-- probe_ref: where
-- probe_text: one of them
-- probe_kills: ends by the kubelet, or by another controller, for a failed probe
-- probe_kill_ref: where
-- ran_s: shortest last life of a container
-- exit_code: exit code of the last termination
-- last_reason: reason of the last termination
-- back_off: the container is held back from restarting
-- evicted: evicted by the node
-- unschedulable: no node could take it
-- starts: engine starts that the logs show
-- clean_starts: of them that end without an error line
-- memory_words: some source holds an explicit memory failure
WITH box AS (
  SELECT max(restarts) AS restarts, max_by(source || ':' || line, restarts) AS restart_ref, min(ran_s) AS ran_s,
    arg_max(exit_code, restarts) AS exit_code, arg_max(last_reason, restarts) AS last_reason,
         bool_or(reason = 'CrashLoopBackOff') AS back_off, count(*) AS n,
         count(*) FILTER (
           reason = 'CrashLoopBackOff'
             OR (coalesce(last_reason, 'Completed') <> 'Completed' AND NOT orderly AND NOT with_machine AND NOT another_day)
         ) AS bad_ends
         FROM container_end
), told AS (
  -- the same events stand in `describe` and in the list of events: the source that counts most speaks
  SELECT source, sum(coalesce(count, 1)) FILTER (failed) AS probe_failures, min(source || ':' || line) FILTER (failed) AS probe_ref,
    min_by(message, line) FILTER (failed) AS probe_text,
         sum(coalesce(count, 1)) FILTER (killed) AS probe_kills, min(source || ':' || line) FILTER (killed) AS probe_kill_ref,
         bool_or(reason IN ('BackOff', 'CrashLoopBackOff')) AS back_off, bool_or(reason = 'Evicted') AS evicted,
           bool_or(reason = 'FailedScheduling') AS unschedulable,
         -- another container of the pod that starts is no restart: the same words are of the same one
         max(alike) FILTER (reason IN ('Restarted', 'Started')) AS started
  FROM (SELECT *, sum(coalesce(count, 1)) OVER (PARTITION BY source, reason, object, message) AS alike, reason = 'Unhealthy' AND (NOT message ILIKE '%readiness%' OR ends_unready) AS failed, reason = 'Killing' AND regexp_matches(message, '(?i)probe|restarting|deadline|unhealthy|health ?check|in a row|not (?:ready|healthy)|failure threshold') AS killed
        -- the kubelet only takes traffic from what is not ready; other controllers end it
        FROM (
          SELECT *,
            bool_or(
              reason = 'Killing' AND regexp_matches(message, '(?i)not (?:ready|healthy)|failure threshold')
            ) OVER (PARTITION BY source) AS ends_unready
          FROM cluster_event
          -- a pod that runs and was never started again has outlived whatever its probes met
          WHERE reason <> 'Unhealthy' OR object NOT IN (SELECT 'pod/' || pod FROM container_end WHERE state = 'Running' AND restarts = 0 AND pod IS NOT NULL) OR object IS NULL
        ))
  GROUP BY source
), event AS (
  SELECT max(probe_failures) AS probe_failures, arg_max(probe_ref, probe_failures) AS probe_ref,
    arg_max(probe_text, probe_failures) AS probe_text, max(probe_kills) AS probe_kills,
    arg_max(probe_kill_ref, probe_kills) AS probe_kill_ref,
         bool_or(back_off) AS back_off, bool_or(evicted) AS evicted, bool_or(unschedulable) AS unschedulable, max(started) AS started,
           count(*) AS n
         FROM told
), counter AS (
  -- events are kept for an hour, the kubelet's counters as long as it runs: of the container whose probes failed most
  SELECT max(value) AS failures, max_by(source || ':' || line, value) AS ref
  FROM metric
  WHERE name = 'prober_probe_total' AND regexp_matches(labels, 'result="failed"') AND NOT regexp_matches(labels, '(?i)probe_type="readiness"')
), threshold AS (
  -- so many in a row end it once
  SELECT min(try_cast(regexp_extract(probe, '#failure=(\d+)', 1) AS INTEGER)) AS misses
  FROM (SELECT liveness AS probe FROM container UNION ALL SELECT startup FROM container)
), life AS (
  SELECT count(*) FILTER (marked) AS starts,
    count(*) FILTER (marked AND start_id NOT IN (SELECT start_id FROM failure_event WHERE grade >= 2 AND start_id IS NOT NULL)) AS clean
  FROM engine_start
), words AS (SELECT count(*) > 0 AS memory FROM failure_event WHERE grade = 4)
SELECT greatest(box.restarts, CASE WHEN event.started > 1 THEN event.started - 1 END)::INTEGER AS restarts,
  coalesce(restart_ref, probe_ref) AS restart_ref, bad_ends::INTEGER AS bad_ends,
  CASE WHEN probe_failures IS NULL AND failures >= greatest(box.restarts, 1) * coalesce(misses, 1) THEN failures
    ELSE coalesce(probe_failures, 0) END::INTEGER AS probe_failures,
  coalesce(probe_ref, CASE WHEN failures >= greatest(box.restarts, 1) * coalesce(misses, 1) THEN counter.ref END) AS probe_ref, probe_text,
  coalesce(probe_kills, 0)::INTEGER AS probe_kills, probe_kill_ref, ran_s, exit_code, last_reason,
    coalesce(greatest(box.back_off, event.back_off), false) AS back_off, coalesce(evicted, false) AS evicted,
  coalesce(unschedulable, false) AS unschedulable, life.starts, life.clean AS clean_starts, words.memory AS memory_words
FROM box, event, counter, threshold, life, words
WHERE box.n + event.n > 0
