-- says: tokens a second that one running request gets, of two conditions under one load: starts of one model with as many requests running, runs of one load test, replicas with requests of one kind, or a stretch of a log with room in the pool and the rest of it; the pair that is farthest apart, beyond what each repeats itself by; no row where none is
-- scope: bundle
-- slow: the condition in which it gets fewer: a log, the line of a run, a replica, a stretch of lines
-- fast: the one in which it gets more
-- slow_rate: tokens a second of one request in the first
-- fast_rate: in the second; of several replicas the median of the others
-- times: how many times as many
-- samples: lines, runs or requests of the first
-- ref: where the first stands
WITH flag AS (
  -- another number of shards is another question, and weights that are kept in the host's memory are read over the bus by intention
  SELECT s.start_id, list_sort(list(DISTINCT g.flag || '=' || g.value)) AS model
  FROM engine_start s
  JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line
  WHERE g.flag IN ('model', 'tensor_parallel_size', 'pipeline_parallel_size', 'data_parallel_size', 'cpu_offload_gb')
  GROUP BY ALL
), stat AS (
  -- a tenth more requests is one load
  SELECT s.start_id, s.source, x.line, x.running, x.waiting, f.model, round(ln(nullif(x.running, 0)) / ln(1 + $like_load)) AS load,
    x.generation_tokens_per_s / nullif(x.running, 0) AS rate, x.kv_used / nullif(x.running, 0) AS depth, x.prompt_tokens_per_s AS prompt, lag(x.running) OVER (PARTITION BY s.start_id ORDER BY x.line) AS ran
  FROM engine_start s
  JOIN engine_stat x ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  LEFT JOIN flag f USING (start_id)
  WHERE (SELECT count(*) > 1 FROM engine_start)
), alike AS (
  SELECT start_id, source, model, load, median(rate) AS rate, median(depth) AS depth, median(prompt) AS prompt, count(*) AS lines, min(source || ':' || line) AS ref
  FROM stat
  -- who runs is told of a moment, tokens are those of the time since the line before
  WHERE rate > 0 AND coalesce(waiting, 0) = 0 AND coalesce(greatest(ran, running) <= $steady_load * least(ran, running), true)
  GROUP BY ALL
), started AS (
  -- longer contexts make each token slower, and so do prompts that are computed beside; the same ones do not
  SELECT CASE WHEN a.source = b.source THEN min(a.ref) ELSE a.source END AS slow, CASE WHEN a.source = b.source THEN min(b.ref) ELSE b.source END AS fast, median(a.rate) AS slow_rate, median(b.rate) AS fast_rate, median(b.rate / a.rate) AS times,
    sum(a.lines) AS samples, min(a.ref) AS ref
  FROM alike a
  -- of two logs that do not say what they serve nobody knows that it is the same
  JOIN alike b ON b.load = a.load AND b.start_id <> a.start_id AND (b.model = a.model OR b.source = a.source AND b.model IS NOT DISTINCT FROM a.model)
  WHERE coalesce(a.depth <= $depth_alike * b.depth, true) AND coalesce(a.prompt <= $depth_alike * b.prompt, true)
  GROUP BY a.source, b.source, a.start_id, b.start_id
  HAVING sum(a.lines) >= $pace_points AND sum(b.lines) >= $pace_points
), course_of AS (
  -- what it usually gets is the upper quarter: a log may be of the bad hour
  SELECT s.start_id, x.source, x.line, x.running, x.waiting, x.kv_used, x.generation_tokens_per_s / x.running AS rate,
    quantile_cont(CASE WHEN x.running > 0 AND x.generation_tokens_per_s > 0 THEN x.generation_tokens_per_s / x.running END, 0.75) OVER (PARTITION BY s.start_id) AS usual,
    row_number() OVER (PARTITION BY s.start_id ORDER BY x.line) AS nth
  FROM engine_start s
  JOIN engine_stat x ON x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line
  WHERE x.running IS NOT NULL AND x.generation_tokens_per_s IS NOT NULL
), fallen AS (
  -- where others run beside it, and each gets something: a prompt alone gives no token until it is computed
  SELECT *, nth - row_number() OVER (PARTITION BY start_id ORDER BY line) AS stretch
  FROM course_of
  WHERE running >= 2 AND rate > 0 AND $pace_falls * rate <= usual AND kv_used < $pool_crowded AND coalesce(waiting, 0) < $roomy_queue
), collapsed AS (
  SELECT 'from line ' || min(line) || ' to ' || max(line) || ' of ' || source AS slow, 'usual there' AS fast, median(rate) AS slow_rate, any_value(usual) AS fast_rate,
    any_value(usual) / median(rate) AS times, count(*) AS samples, min(source || ':' || line) AS ref
  FROM fallen
  GROUP BY source, start_id, stretch
  HAVING count(*) >= $fall_lasts
), run AS (
  SELECT source || ':' || line AS ref, run, source, clients, rate_per_s, requests, prompt_tokens, output_tokens, tpot_s
  FROM load_run
  WHERE tpot_s > 0 AND prompt_tokens > 0 AND output_tokens > 0
), ran AS (
  SELECT a.ref AS slow, b.ref AS fast, 1 / a.tpot_s AS slow_rate, 1 / b.tpot_s AS fast_rate, a.tpot_s / b.tpot_s AS times, 1 AS samples, a.ref
  FROM run a
  JOIN run b ON b.ref <> a.ref AND b.clients IS NOT DISTINCT FROM a.clients AND b.rate_per_s IS NOT DISTINCT FROM a.rate_per_s
    AND b.requests IS NOT DISTINCT FROM a.requests AND abs(b.prompt_tokens - a.prompt_tokens) <= $lengths_repeat * a.prompt_tokens
    AND abs(b.output_tokens - a.output_tokens) <= $lengths_repeat * a.output_tokens
), server AS (
  SELECT source, replica, median(output_tokens / (latency_s - coalesce(ttft_s, 0))) AS rate, median(input_tokens) AS prompt, median(output_tokens) AS answer,
    count(*) AS requests, min(source || ':' || line) AS ref
  FROM request
  WHERE replica IS NOT NULL AND output_tokens > 1 AND latency_s > coalesce(ttft_s, 0)
  GROUP BY ALL
  HAVING count(*) >= $requests_enough
), served AS (
  SELECT a.replica AS slow, 'the median of the others' AS fast, a.rate AS slow_rate, median(b.rate) AS fast_rate, median(b.rate) / a.rate AS times,
    a.requests AS samples, a.ref
  FROM server a
  JOIN server b ON b.source = a.source AND b.replica <> a.replica AND a.prompt <= $alike_prompts * b.prompt AND a.answer <= $alike_prompts * b.answer
    AND b.answer <= $alike_prompts * a.answer
  GROUP BY a.replica, a.rate, a.requests, a.ref
)
SELECT slow, fast, slow_rate, fast_rate, times, samples::BIGINT AS samples, ref
FROM (
  SELECT * FROM started WHERE times >= $paced_apart
  UNION ALL SELECT * FROM served WHERE times >= $paced_apart
  UNION ALL SELECT * FROM collapsed
  UNION ALL SELECT * FROM ran WHERE times >= $run_repeats
)
ORDER BY times DESC, ref, fast LIMIT 1
