-- says: how hard live traffic pressed on the KV pool, from statistics lines and metrics together; no row without either, and readings of the pool are left out where somebody waited and all of them are of other hours, or up to the end of a press that was over days before the last or belongs to the launch of a server
-- scope: incident
-- samples: points with a usage
-- share_pinned: share of them at 95 % or more
-- share_high: share at 85 % or more
-- peak: highest usage, 0..1
-- peak_ref: where
-- mean: mean usage
-- waiting_max: most requests waiting
-- queued_full: points at 85 % or more with requests waiting behind some that run, more than come in with the next step
-- waiting_full: most requests waiting at one of them
-- queued_roomy: points below 50 % with requests waiting, more than come in with the next step
-- queued_ref: one of those, the longest queue
-- queued: points with requests waiting, more than come in with the next step
-- running_max: most requests running
-- cap: the most that ran in such points
-- capped: such points in which as many ran, or all but those that ended with the step
-- capped_ref: the longest queue among them
-- rising: usage at the end less usage at the beginning
-- stalled: points with a queue at 90 % or more behind some that run, and no prompt tokens for the interval
-- preemptions: preemptions counted by warnings, metrics or a sheet of runs; NULL = nobody counted
-- preemption_ref: where
-- swaps: preemptions by swapping or aborts for lack of blocks
-- first_ref: where pressure began
-- hit_rate: last prefix-cache hit rate of the log, 0..1
-- demand: the most that running and waiting requests together would have used, each like those that ran; 1 = the pool; where the requests are known, at most what they held
-- state_full: share of the points in which the slots for recurrent states are taken; NULL = the model has none, or not printed
-- state_ref: the first of them
-- running_drop: while the pool was full, running fell and waiting rose
-- eased: nobody was ever seen to wait, nobody was preempted between two readings, and the last of them is of a pool with room: however full it was, it turned nobody away
-- held_by_nobody: points at 85 % or more in which requests wait and none runs: those that run would give their blocks back
-- held_by_nobody_waiting: most requests waiting at one of them
-- held_by_nobody_share: the least usage at them
-- held_by_nobody_ref: the first of them
WITH moved AS (
  SELECT source, max(line) FILTER (NOT coalesce(running > 0 AND prompt_tokens_per_s = 0 AND generation_tokens_per_s = 0, false)) AS line
  FROM seen.engine_stat
  GROUP BY source
), standing AS (
  SELECT m.source, m.line, count(*) AS lines
  FROM moved m
  JOIN seen.engine_stat s ON s.source = m.source AND s.line > m.line
  GROUP BY ALL
), stat AS (
  -- a standstill at the end (work in hand, no token in or out) is none of it: what queues up there waits for whatever stands
  SELECT source, s.line, t, running, waiting, kv_used, prompt_tokens_per_s, prefix_hit_rate, state_used,
    s.line > e.line AND e.lines >= $still_lines AS still
  FROM seen.engine_stat s
  LEFT JOIN standing e USING (source)
  WHERE kv_used IS NOT NULL
    -- of prefill and decode apart the pool that nobody waits for says nothing of the other, nor one whose blocks the other has no room for yet
    AND NOT EXISTS (FROM prefill_side p WHERE p.source = s.source AND p.engine IS NOT DISTINCT FROM s.engine AND (NOT p.waits OR p.fetched_late))
), gauge AS (
  SELECT source, min(line) AS line, t, max(value) FILTER (name = 'vllm:num_requests_running') AS running,
    max(value) FILTER (name = 'vllm:num_requests_waiting') AS waiting,
         max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')) AS kv_used,
           NULL::DOUBLE AS prompt_tokens_per_s, NULL::DOUBLE AS prefix_hit_rate, NULL::DOUBLE AS state_used
  FROM metric
  WHERE name IN ('vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')
    AND labels IS DISTINCT FROM 'delta'
  GROUP BY source, t HAVING kv_used BETWEEN 0 AND 1
), reading AS (
  SELECT * EXCLUDE (still)
  FROM stat
  WHERE NOT coalesce(still, false)
  UNION ALL
  SELECT *
  FROM gauge
  -- or what they show is beyond all that the log does: it was not kept for as long
  WHERE (SELECT count(*) FROM stat) < $log_course_lines OR (SELECT max(kv_used) FROM gauge) >= (SELECT max(kv_used) FROM stat) + $beyond_the_log
), queue_hour AS (
  -- when somebody waited, by records that do not tell the usage: requests, and a panel of the queue
  SELECT min(a) AS a, max(b) AS b
  FROM (
    SELECT t AS a, t AS b FROM seen.engine_stat WHERE kv_used IS NULL AND waiting > $queue_of_step * coalesce(running, 0)
    UNION ALL
    SELECT t + $waited_s, t + ttft_s FROM request WHERE ttft_s > $waited_s
  )
  HAVING count(a) >= $hold_moments
), elsewhere AS (
  -- readings of other hours say nothing of those in which somebody waited
  SELECT count(*) > 0 AS so
  FROM (
    SELECT max(waiting) AS waiting, count(*) FILTER (t IS NULL OR t BETWEEN a AND b) AS within
    FROM reading, queue_hour
    HAVING count(*) > 0)
  WHERE within = 0 AND waiting = 0
), pressed AS (
  -- a press that was over days before the last reading is of another time: a load test before the launch, say
  SELECT max(t) FILTER (kv_used >= $pool_crowded AND waiting > 0) AS until, max(t) AS last FROM reading
), point AS (
  SELECT * FROM reading WHERE NOT (SELECT so FROM elsewhere) AND NOT coalesce((SELECT last - until > $long_past_s AND t <= until FROM pressed), false)
    AND NOT coalesce(t <= (SELECT max(until_t) FROM launch_press), false)
), stepped AS (
  -- in the order of sources and lines, which is theirs already: to part them by source first costs as much again
  SELECT *, CASE WHEN lag(source) OVER w = source THEN lag(running) OVER w END AS running_before,
    CASE WHEN lag(source) OVER w = source THEN lag(waiting) OVER w END AS waiting_before,
    waiting > $queue_of_step * coalesce(running, 0) AS queues,
    kv_used >= $pool_crowded AND running = 0 AND waiting > 0 AND coalesce(prompt_tokens_per_s, 0) < $idle_rate AS nobody
  FROM point
  WINDOW w AS (ORDER BY source, line, t)
), folded AS (
  SELECT count(*) AS samples, avg((kv_used >= $pool_pinned)::INT) AS share_pinned, avg((kv_used >= $pool_crowded)::INT) AS share_high,
    max(kv_used) AS peak,
    -- source and line by themselves: to join them to a reference for each of a million lines costs more than all of this
    max_by(source, kv_used) || ':' || max_by(line, kv_used) AS peak_ref, avg(kv_used) AS mean, max(waiting) AS waiting_max,
    count(*) FILTER (kv_used >= $pool_crowded AND queues AND running IS DISTINCT FROM 0) AS queued_full,
      max(waiting) FILTER (kv_used >= $pool_crowded) AS waiting_full,
    count(*) FILTER (kv_used < $pool_roomy AND queues) AS queued_roomy,
    arg_max(source, waiting) FILTER (kv_used < $pool_roomy AND waiting > 0)
      || ':' || arg_max(line, waiting) FILTER (kv_used < $pool_roomy AND waiting > 0) AS queued_ref,
      count(*) FILTER (queues) AS queued,
    max(running) AS running_max, max(running) FILTER (queues) AS cap, arg_max(kv_used, line) - arg_min(kv_used, line) AS rising,
    arg_max(kv_used, line) AS last,
    count(*) FILTER (kv_used >= $pool_full AND waiting > 0 AND prompt_tokens_per_s = 0 AND running IS DISTINCT FROM 0) AS stalled,
    min_by(source, line) FILTER (kv_used >= $pool_pinned OR (kv_used >= $pool_crowded AND waiting > 0))
      || ':' || min(line) FILTER (kv_used >= $pool_pinned OR (kv_used >= $pool_crowded AND waiting > 0)) AS first_ref,
    arg_max(prefix_hit_rate, line) AS hit_rate,
    max(kv_used * (running + coalesce(waiting, 0)) / running) FILTER (running > 0 AND kv_used >= $pool_told_by_running) AS demand,
    avg((state_used >= $pool_pinned)::INT) AS state_full,
      min_by(source, line) FILTER (state_used >= $pool_pinned)
      || ':' || min(line) FILTER (state_used >= $pool_pinned) AS state_ref,
    count(*) FILTER (kv_used >= $pool_full AND running > 0 AND running < running_before AND waiting > waiting_before) AS running_drop,
    count(*) FILTER (nobody) AS held_by_nobody, max(waiting) FILTER (nobody) AS held_by_nobody_waiting,
    min(kv_used) FILTER (nobody) AS held_by_nobody_share, min_by(source, line) FILTER (nobody)
      || ':' || min(line) FILTER (nobody) AS held_by_nobody_ref
  FROM stepped
), held AS (
  -- of queues of one length the first, whatever order threads come to them in
  SELECT count(*) AS capped, arg_max(p.source, (p.waiting, -p.line::BIGINT)) || ':' || arg_max(p.line, (p.waiting, -p.line::BIGINT)) AS ref
  FROM stepped p, folded f
  WHERE p.queues AND p.running >= $cap_step * f.cap AND f.cap >= f.running_max
), warned AS (
  SELECT max(coalesce(cumulative, 1)) FILTER (mode IS DISTINCT FROM 'ABORT') AS preemptions, min_by(source || ':' || line, line) AS ref,
    count(*) FILTER (mode IN ('SWAP', 'ABORT')) AS swaps, count(*) AS n
  FROM seen.preemption
), counted AS (
  -- a sheet without labels is of the same servers as the series with them
  SELECT greatest(sum(grown) FILTER (coalesce(labels, '') <> ''), max(grown) FILTER (coalesce(labels, '') = '')) AS preemptions, min(ref) AS ref,
    bool_or(grown > 0 AND (readings = 1 OR grown > least)) AS rises
  FROM (
    SELECT labels, max(value) AS grown, min(value) AS least, count(*) AS readings, min_by(source || ':' || line, t) FILTER (value > 0) AS ref
    FROM metric
    WHERE name IN ('vllm:num_preemptions_total', 'vllm:num_preemptions')
    GROUP BY labels)
), sheet AS (
  -- a sheet of runs: most of them preempted, or none did; what one run of several did is no state of the server
  SELECT CASE WHEN median(value) > 0 OR max(value) = 0 THEN max(value) END AS preemptions, arg_max(source || ':' || line, value) AS ref
  FROM trial_figure
  WHERE quantity = 'preemptions'
)
SELECT f.* EXCLUDE (last) REPLACE (
    CASE WHEN h.tokens > 0 AND e.kv_pool_tokens > 0
      THEN least(f.demand, greatest(f.peak, h.tokens / (e.kv_pool_tokens * e.data_parallel_size))) ELSE f.demand END AS demand),
  -- a warning is one preemption at least; the larger of two counts saw more of them
  greatest(CASE WHEN w.n > 0 THEN coalesce(w.preemptions, 1) END, c.preemptions, s.preemptions)::BIGINT AS preemptions,
  coalesce(f.waiting_max = 0 AND f.last < $pool_crowded AND w.n = 0 AND NOT coalesce(c.rises, false) AND coalesce(s.preemptions, 0) = 0, false) AS eased,
  d.capped, d.ref AS capped_ref, coalesce(w.ref, c.ref, s.ref) AS preemption_ref, CASE WHEN w.n > 0 THEN w.swaps END AS swaps
FROM folded f, held d, warned w, counted c, sheet s, engine e, (SELECT max(tokens) AS tokens FROM traffic_flight) h
WHERE f.samples > 0 OR w.n > 0 OR c.preemptions IS NOT NULL OR s.preemptions IS NOT NULL
