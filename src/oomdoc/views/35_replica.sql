-- says: replicas of one server side by side, the most crowded against the others; no row where fewer than two are told apart, or where each was looked at for a moment only and no counter tells of the time before
-- scope: bundle
-- replicas: how many
-- crowded: name of the one that runs most
-- running: requests it runs, mean
-- waiting: requests that wait before it, mean
-- kv_peak: its highest KV usage, 0..1
-- others_running: requests that the busiest of the others runs, mean
-- others_waiting: requests that wait before the others, the most at any moment
-- done: requests that it finished since its start; NULL = not counted
-- others_done: those of the one of the others that finished most
-- ref: where it had most waiting
WITH named AS (
  SELECT process AS name, source, line, running, waiting, kv_used, NULL::DOUBLE AS done
  FROM engine_stat
  UNION ALL
  SELECT regexp_extract(labels, '(?:pod|instance|replica|backend|worker|pod_name|hostname)="([^"]+)"', 1) AS name, source, min(line),
    max(value) FILTER (name = 'vllm:num_requests_running'),
         max(value) FILTER (name = 'vllm:num_requests_waiting'),
           max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')),
         sum(value) FILTER (name = 'vllm:request_success_total')
  FROM metric
  WHERE name IN (
    'vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc',
    'vllm:request_success_total'
  )
  GROUP BY regexp_extract(labels, '(?:pod|instance|replica|backend|worker|pod_name|hostname)="([^"]+)"', 1), source, t
), one AS (
  SELECT name, count(*) AS samples, avg(running) AS running, avg(coalesce(waiting, 0)) AS waiting, max(waiting) AS waiting_max,
    max(kv_used) AS kv_peak, max(done) AS done, arg_max(source || ':' || line, coalesce(waiting, 0)) AS ref
  FROM named WHERE name <> '' AND running IS NOT NULL GROUP BY name HAVING count(*) >= $replica_samples OR max(done) IS NOT NULL
)
SELECT count(*) AS replicas, arg_max(name, running) AS crowded, max(running) AS running, arg_max(waiting, running) AS waiting,
  arg_max({'x': kv_peak}, running).x AS kv_peak,
       max(running) FILTER (name <> top) AS others_running, max(waiting_max) FILTER (name <> top) AS others_waiting,
       max(done) FILTER (name = top) AS done, max(done) FILTER (name <> top) AS others_done, arg_max(ref, running) AS ref
FROM (SELECT *, first_value(name) OVER (ORDER BY running DESC, name) AS top FROM one)
HAVING count(*) >= 2
  AND (min(samples) >= $replica_samples OR max(done) FILTER (name = top) >= $crowded_over_others * max(done) FILTER (name <> top))
