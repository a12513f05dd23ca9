-- says: one row per measure of the recorded requests: its percentiles and its largest value, for `traffic` and the profile
-- scope: bundle
-- measure: input_tokens, output_tokens, context_tokens (both together), latency_s, ttft_s, or least_context_tokens, where an unknown generation counts as 0; times of more than 500,000 requests are sampled
-- p50: median
-- p90: 90th percentile
-- p95: 95th percentile
-- p99: 99th percentile
-- largest: largest value
WITH counted AS (
  -- how many requests have so many tokens: the same as quantile_disc over the requests, which keeps every value in memory
  SELECT 'input_tokens' AS measure, input_tokens AS n, count(*) AS requests FROM request GROUP BY n
  UNION ALL SELECT 'output_tokens', output_tokens AS n, count(*) FROM request GROUP BY n
  UNION ALL SELECT 'context_tokens', input_tokens + output_tokens AS n, count(*) FROM request GROUP BY n
  UNION ALL SELECT 'least_context_tokens', input_tokens + coalesce(output_tokens, 0) AS n, count(*) FROM request GROUP BY n
), ranked AS (
  SELECT measure, n, sum(requests) OVER (PARTITION BY measure ORDER BY n) AS upto, sum(requests) OVER (PARTITION BY measure) AS total
  FROM counted
  WHERE n IS NOT NULL
), tokens AS (
  SELECT measure, min(n) FILTER (upto >= total - floor(total - 0.5::DOUBLE * total)) AS p50,
    min(n) FILTER (upto >= total - floor(total - 0.9::DOUBLE * total)) AS p90,
    min(n) FILTER (upto >= total - floor(total - 0.95::DOUBLE * total)) AS p95,
      min(n) FILTER (upto >= total - floor(total - 0.99::DOUBLE * total)) AS p99, max(n) AS largest
  FROM ranked GROUP BY measure
), thin AS (
  SELECT 1 + count(*) // 500000 AS step FROM request
), times AS (
  -- hardly two are alike; of more than half a million those of every second, third ... line
  SELECT 'latency_s' AS measure, quantile_disc(latency_s, [0.5, 0.9, 0.95, 0.99]) FILTER (line % step = 0) AS p, max(latency_s) AS largest
  FROM request, thin
  UNION ALL SELECT 'ttft_s', quantile_disc(ttft_s, [0.5, 0.9, 0.95, 0.99]) FILTER (line % step = 0), max(ttft_s) FROM request, thin
)
SELECT measure, p50::DOUBLE AS p50, p90::DOUBLE AS p90, p95::DOUBLE AS p95, p99::DOUBLE AS p99, largest::DOUBLE AS largest FROM tokens
UNION ALL SELECT measure, p[1], p[2], p[3], p[4], largest FROM times WHERE largest IS NOT NULL
ORDER BY measure
