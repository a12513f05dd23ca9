-- says: lives of one container that were ended from outside at one and the same age, and what its probes allow; no row where none is known
-- scope: bundle
-- lives: ended lives whose length is told
-- again: three or more, and none differs from the others by more than a fiftieth
-- alike: so, and nothing of their own can have ended them: a signal did, or they end at several steps
-- median_s: their length
-- spread_s: longest less shortest
-- budget_s: seconds that a probe gives a server which does not answer: delay + period x failures, of the startup probe, else of the liveness probe; NULL = no probe told
-- probe: startup or liveness
-- of_budget: they last as long as that, to a period, or longer by no more than the grace that is given before a kill
-- ref: where the first of them stands
WITH logged AS (
  -- what runs out of something ends at the same step each time: those that end at several were ended by a clock
  SELECT source, first_line, last_milestone, ran_s
  FROM (
    SELECT *, lead(t) OVER (PARTITION BY source ORDER BY first_line) - t AS ran_s
    FROM engine_start
    WHERE marked
  ) s
  WHERE NOT served AND ran_s >= $life_least_s AND NOT EXISTS (FROM failure_event f WHERE f.start_id = s.start_id AND f.grade >= 2)
), life AS (
  -- from outside: SIGKILL, SIGTERM, or an orderly end that nobody asked for; a kill for memory has its own reason
  SELECT pod, name, source, line, ran_s, true AS clocked FROM container
  WHERE ran_s >= $life_least_s AND exit_code IN (0, 137, 143, -9, -15)
    AND coalesce(last_reason, '') NOT IN ('OOMKilled', 'Evicted', 'Unknown') AND (exit_code <> 0 OR restarts > 0)
  UNION ALL
  -- by the log: from a start that neither came up nor failed to the next one
  SELECT NULL, source, source, first_line, ran_s, source IN (SELECT source FROM logged GROUP BY source HAVING count(DISTINCT last_milestone) > 1)
  FROM logged
), probe AS (
  SELECT kind, sum_s, period FROM (
    SELECT kind,
      coalesce(
        try_cast(regexp_extract(text, 'delay=(\d+)', 1) AS DOUBLE), 0
      ) + try_cast(regexp_extract(text, 'period=(\d+)', 1) AS DOUBLE) * try_cast(regexp_extract(text, '#failure=(\d+)', 1) AS DOUBLE) AS sum_s,
           try_cast(regexp_extract(text, 'period=(\d+)', 1) AS DOUBLE) AS period
    FROM (
      SELECT 'startup' AS kind, startup AS text
      FROM container
      WHERE startup IS NOT NULL
      UNION ALL
      SELECT 'liveness', liveness
      FROM container
      WHERE liveness IS NOT NULL
      UNION ALL
      -- of compose: who starts anew what is unhealthy ends it as a kubelet does
      SELECT 'liveness', text
      FROM note
      WHERE topic = 'health-check'
    ))
  WHERE sum_s > 0 ORDER BY kind DESC, sum_s LIMIT 1
), folded AS (
  SELECT count(*) AS lives, count(*) >= $lives_alike AND max(ran_s) - min(ran_s) <= $age_spread * median(ran_s) AS again,
    bool_and(clocked) AS clocked, median(ran_s) AS median_s, max(ran_s) - min(ran_s) AS spread_s, min(source || ':' || line) AS ref
  FROM life
  GROUP BY pod, name, CASE WHEN coalesce(pod, name) IS NULL THEN source END
)
SELECT lives, again, again AND clocked AS alike, median_s, spread_s, sum_s AS budget_s, kind AS probe,
  -- some heed the signal at once, some not before they are killed
  median_s BETWEEN sum_s - period AND sum_s + $grace_s + period AS of_budget, ref
FROM folded
LEFT JOIN probe ON true
WHERE clocked OR of_budget
ORDER BY lives DESC, ref
LIMIT 1
