-- says: requests and tokens in flight over time, at most 240 steps; no row without arrival times and latencies
-- scope: bundle
-- t: begin of the step
-- step_s: length of a step
-- requests: requests in flight at the end of the step
-- tokens: prompt + generated tokens of the requests in flight (an upper bound: a request counts in full while it runs)
-- arrivals: requests that arrived in the step
WITH span AS (
  SELECT min(t) AS a, max(t + coalesce(latency_s, 0)) AS b, count(latency_s) AS timed FROM request WHERE t IS NOT NULL
), grid AS (
  SELECT a, greatest(1, ceil((b - a) / 240)) AS step_s FROM span WHERE timed > 0 AND b > a
), event AS (
  SELECT floor((t - a) / step_s)::INTEGER AS step, 1 AS requests, coalesce(input_tokens, 0) + coalesce(output_tokens, 0) AS tokens, 1 AS arrivals, step_s, a FROM request, grid WHERE t IS NOT NULL
  UNION ALL SELECT floor((t + latency_s - a) / step_s)::INTEGER, -1, -coalesce(input_tokens, 0) - coalesce(output_tokens, 0), 0, step_s, a FROM request, grid WHERE t IS NOT NULL AND latency_s IS NOT NULL
), stepped AS (
  SELECT step, sum(requests) AS requests, sum(tokens) AS tokens, sum(arrivals) AS arrivals, any_value(step_s) AS step_s, any_value(a) AS a FROM event GROUP BY step
)
SELECT a + step * step_s AS t, step_s, sum(requests) OVER (ORDER BY step)::BIGINT AS requests, sum(tokens) OVER (ORDER BY step)::BIGINT AS tokens, arrivals::BIGINT AS arrivals FROM stepped ORDER BY step
