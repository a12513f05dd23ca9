-- says: replicas of one server side by side, the most crowded against the others; no row where fewer than two are told apart, or where each was looked at for a moment only and no counter tells of the time before or between
-- scope: bundle
-- replicas: how many
-- crowded: name of the one that runs most; engines of one process, which have no other name, by their number
-- running: requests it runs, mean
-- waiting: requests that wait before it, mean
-- kv_peak: its highest KV usage, 0..1
-- others_running: requests that the busiest of the others runs, mean
-- others_waiting: requests that wait before the others, the most at any moment
-- done: requests that it finished since its start; NULL = not counted
-- others_done: those of the one of the others that finished most
-- made: tokens that it generated between its first scrape and its last; NULL = not counted twice
-- others_made: those of the one of the others that generated most
-- each_rate: tokens a second that one of its running requests gets, the median of its statistics lines; NULL = not told
-- others_rate: the least that one of the others gives
-- ref: where it had most waiting
WITH labelled AS (
  SELECT source, t, line, name, value, regexp_extract(labels, '(?:pod|instance|replica|backend|worker|pod_name|hostname)="([^"]+)"', 1) AS server,
    try_cast(regexp_extract(labels, '(?:^|,)engine="(\d+)"', 1) AS INTEGER) AS engine
  FROM metric
  WHERE name IN (
    'vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc',
    'vllm:request_success_total', 'vllm:generation_tokens_total'
  )
), scraped AS (
  -- several engines behind one name are one server
  SELECT source, server, CASE WHEN server = '' THEN engine END AS engine, t, min(line) AS line,
    max(value) FILTER (name = 'vllm:num_requests_running') AS running,
    max(value) FILTER (name = 'vllm:num_requests_waiting') AS waiting,
    max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')) AS kv_used,
    sum(value) FILTER (name = 'vllm:request_success_total') AS done, sum(value) FILTER (name = 'vllm:generation_tokens_total') AS tokens
  FROM labelled
  GROUP BY ALL
), named AS (
  SELECT CASE WHEN count(DISTINCT engine) OVER (PARTITION BY source, process) > 1 THEN 'engine ' || engine ELSE process END AS name, source, line,
    running, waiting, kv_used, NULL::DOUBLE AS done, NULL::DOUBLE AS tokens,
    CASE WHEN running > 0 AND generation_tokens_per_s > 0 THEN generation_tokens_per_s / running END AS each_rate
  FROM engine_stat
  UNION ALL
  SELECT CASE WHEN server <> '' THEN server WHEN count(DISTINCT engine) OVER (PARTITION BY source, server) > 1 THEN 'engine ' || engine END, source, line,
    running, waiting, kv_used, done, tokens, NULL
  FROM scraped
), one AS (
  SELECT name, count(*) AS samples, avg(running) AS running, avg(coalesce(waiting, 0)) AS waiting, max(waiting) AS waiting_max,
    max(kv_used) AS kv_peak, max(done) AS done, nullif(max(tokens) - min(tokens), 0) AS made, median(each_rate) AS each_rate,
    arg_max(source || ':' || line, coalesce(waiting, 0)) AS ref
  FROM named WHERE name <> '' AND running IS NOT NULL GROUP BY name
  HAVING count(*) >= $replica_samples OR max(done) IS NOT NULL OR count(tokens) > 1
)
SELECT count(*) AS replicas, arg_max(name, running) AS crowded, max(running) AS running, arg_max(waiting, running) AS waiting,
  arg_max({'x': kv_peak}, running).x AS kv_peak,
       max(running) FILTER (name <> top) AS others_running, max(waiting_max) FILTER (name <> top) AS others_waiting,
       max(done) FILTER (name = top) AS done, max(done) FILTER (name <> top) AS others_done,
       max(made) FILTER (name = top) AS made, max(made) FILTER (name <> top) AS others_made,
       max(each_rate) FILTER (name = top) AS each_rate, min(each_rate) FILTER (name <> top) AS others_rate, arg_max(ref, running) AS ref
FROM (SELECT *, first_value(name) OVER (ORDER BY running DESC, name) AS top FROM one)
HAVING count(*) >= 2
  AND (min(samples) >= $replica_samples OR max(done) FILTER (name = top) >= $crowded_over_others * max(done) FILTER (name <> top)
    OR max(made) FILTER (name = top) >= $crowded_over_others * max(made) FILTER (name <> top))
