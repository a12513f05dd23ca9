-- says: requests and tokens in flight over time, in at most 241 equal steps without a gap; no row without arrival times and latencies
-- scope: bundle
-- t: begin of the step; of requests without a date, seconds since midnight or another beginning
-- step_s: length of a step
-- requests: requests in flight at the end of the step, of those with a latency
-- tokens: prompt + generated tokens of the requests in flight (an upper bound: a request counts in full while it runs)
-- arrivals: requests that arrived in the step
-- arrived_tokens: prompt tokens of the requests that arrived in the step
WITH asked AS (
  SELECT coalesce(t, elapsed_s) AS t, latency_s, input_tokens, output_tokens
  FROM request
  WHERE t IS NOT NULL OR NOT EXISTS (FROM request WHERE t IS NOT NULL)
), span AS (
  SELECT min(t) AS a, max(t + coalesce(latency_s, 0)) AS b, count(latency_s) AS timed FROM asked WHERE t IS NOT NULL
), grid AS (
  SELECT a, b, greatest(1, ceil((b - a) / 240)) AS step_s FROM span WHERE timed > 0 AND b > a
), event AS (
  SELECT floor((t - a) / step_s)::INTEGER AS step, (latency_s IS NOT NULL)::INTEGER AS requests,
    CASE WHEN latency_s IS NOT NULL THEN coalesce(input_tokens, 0) + coalesce(output_tokens, 0) ELSE 0 END AS tokens,
    1 AS arrivals, coalesce(input_tokens, 0) AS arrived_tokens FROM asked, grid WHERE t IS NOT NULL
  UNION ALL
  SELECT floor((t + latency_s - a) / step_s)::INTEGER, -1, -coalesce(input_tokens, 0) - coalesce(output_tokens, 0), 0, 0
  FROM asked, grid
  WHERE t + latency_s IS NOT NULL
), counted AS (
  SELECT step, sum(requests) AS requests, sum(tokens) AS tokens, sum(arrivals) AS arrivals, sum(arrived_tokens) AS arrived_tokens
  FROM event
  GROUP BY step
), every AS (
  SELECT unnest(range(0, floor((b - a) / step_s)::INTEGER + 1))::INTEGER AS step FROM grid
)
SELECT a + e.step * step_s AS t, step_s, (sum(coalesce(requests, 0)) OVER w)::BIGINT AS requests,
  (sum(coalesce(tokens, 0)) OVER w)::BIGINT AS tokens,
  coalesce(arrivals, 0)::BIGINT AS arrivals, coalesce(arrived_tokens, 0)::BIGINT AS arrived_tokens
FROM every e CROSS JOIN grid LEFT JOIN counted c ON c.step = e.step WINDOW w AS (ORDER BY e.step) ORDER BY e.step
