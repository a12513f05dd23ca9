-- says: one row per engine start with statistics: how full the pool was and whether anything waited
-- scope: bundle
-- start_id: engine start
-- samples: statistics lines with a usage
-- share_pinned: share of the samples with usage at 95 % or more
-- peak: highest usage, 0..1
-- queued_full: samples at 85 % or more with requests waiting, more than come in with the next step
-- pressed: the pool was the limit: full with a queue, or pinned, unless each line tells that nobody waits, or preemption warnings that are more than a rarity among the requests done
-- first_ref: where pressure began
-- first_t: when
WITH stat AS (
  SELECT s.start_id, x.*, x.kv_used >= $pool_crowded AND x.waiting > $queue_of_step * coalesce(x.running, 0) AS queued
  FROM engine_stat x
  JOIN engine_start s ON s.source = x.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE x.kv_used IS NOT NULL
    -- of a life that was pressed before its traffic came, what came after tells
    AND NOT coalesce(x.t <= (SELECT until_t FROM launch_press l WHERE l.start_id = s.start_id), false)
), warned AS (
  SELECT s.start_id, min_by(x.source || ':' || x.line, x.line) AS ref, min(x.t) AS t
  FROM preemption x JOIN engine_start s ON s.source = x.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE NOT EXISTS (FROM preempt_rate WHERE rare)
  GROUP BY s.start_id
), folded AS (
  SELECT start_id, count(*) AS samples, avg((kv_used >= $pool_pinned)::INT) AS share_pinned, max(kv_used) AS peak,
    count(*) FILTER (queued) AS queued_full, count(*) FILTER (waiting = 0) = count(*) AS nobody_waits,
         min_by(source || ':' || line, line) FILTER (queued OR kv_used >= $pool_pinned) AS first_ref,
           min(t) FILTER (queued OR kv_used >= $pool_pinned) AS first_t
  FROM stat GROUP BY start_id
)
SELECT coalesce(f.start_id, w.start_id) AS start_id, coalesce(samples, 0) AS samples, share_pinned, peak,
  coalesce(queued_full, 0) AS queued_full,
       coalesce(queued_full >= $queued_full_lines OR share_pinned >= $pinned_lasts AND NOT nobody_waits, false) OR w.start_id IS NOT NULL AS pressed,
       coalesce(first_ref, w.ref) AS first_ref, coalesce(first_t, w.t) AS first_t
FROM folded f FULL JOIN warned w ON w.start_id = f.start_id
