-- says: the recorded requests in one row: counts, percentiles, buckets, arrival; no row without a request log
-- scope: bundle
-- requests: requests with an input length, or those of which is told what became of them, if they are more; 0 where no length is told
-- ref: first row
-- input_p50: median prompt, tokens
-- input_p95: 95th percentile
-- input_p99: 99th percentile
-- input_max: longest prompt
-- output_p50: median generation
-- output_p95: 95th percentile
-- output_max: longest generation
-- context_p50: prompt + generation, median
-- context_p95: 95th percentile
-- context_max: longest
-- small: share of requests below 512 prompt tokens
-- medium: 512 to 2047
-- large: 2048 to 8191
-- xlarge: 8192 and more
-- from_t: first arrival
-- to_t: last arrival
-- per_s: arrivals per second
-- input_tokens: all prompt tokens
-- output_tokens: all generated tokens
-- failed: answers with status 500 and above
-- refused: turned away without work: status 503, or 4xx but 499
-- bad_requests: of these a status that blames the request: 4xx but 429 and 499
-- client_gone: status 499
-- unanswered: status 0
-- statuses: requests of which it is known what became of them
-- failing_at_end: how many at the end, behind the last that was answered, failed; NULL where none was answered or nobody says
-- long_share_early: share of 2048 tokens and more in the first half of the time
-- long_share_late: in the second half
-- ttft_p95_s: 95th percentile of the time to first token
-- ttft_early_s: mean time to first token in the first quarter of the time
-- ttft_late_s: in the last quarter
-- cached_share: cached prompt tokens / prompt tokens
WITH span AS (
  SELECT min(t) AS a, max(t) AS b FROM request
), size AS (
  SELECT max(p50) FILTER (measure = 'input_tokens')::BIGINT AS input_p50, max(p95) FILTER (measure = 'input_tokens')::BIGINT AS input_p95,
    max(p99) FILTER (measure = 'input_tokens')::BIGINT AS input_p99,
    max(largest) FILTER (measure = 'input_tokens')::BIGINT AS input_max, max(p50) FILTER (measure = 'output_tokens')::BIGINT AS output_p50,
      max(p95) FILTER (measure = 'output_tokens')::BIGINT AS output_p95,
    max(largest) FILTER (measure = 'output_tokens')::BIGINT AS output_max,
      max(p50) FILTER (measure = 'least_context_tokens')::BIGINT AS context_p50,
    max(p95) FILTER (measure = 'least_context_tokens')::BIGINT AS context_p95,
      max(largest) FILTER (measure = 'least_context_tokens')::BIGINT AS context_max, max(p95) FILTER (measure = 'ttft_s') AS ttft_p95_s
  FROM request_size
), counted AS (
  -- the reference in two parts: min_by(source || ':' || line, line) would make a text of every row
  SELECT count(*) AS n, CASE WHEN count(input_tokens) > 0 THEN greatest(count(input_tokens), count(status)) ELSE 0 END AS requests, min_by(source, line) || ':' || min(line) AS ref,
    avg((input_tokens < $prompt_m)::INT) AS small, avg((input_tokens >= $prompt_m AND input_tokens < $prompt_l)::INT) AS medium,
    avg((input_tokens >= $prompt_l AND input_tokens < $prompt_xl)::INT) AS large, avg((input_tokens >= $prompt_xl)::INT) AS xlarge,
    min(t) AS from_t, max(t) AS to_t, sum(input_tokens)::BIGINT AS input_tokens, sum(output_tokens)::BIGINT AS output_tokens,
    count(*) FILTER (status >= 500 AND status <> 503) AS failed, count(*) FILTER (status = 503 OR status BETWEEN 400 AND 498) AS refused,
    count(*) FILTER (status BETWEEN 400 AND 498 AND status <> 429) AS bad_requests, count(*) FILTER (status = 499) AS client_gone,
      count(*) FILTER (status = 0) AS unanswered, count(status) AS statuses,
    avg((input_tokens >= $prompt_l)::INT) FILTER (t < (a + b) / 2) AS long_share_early,
      avg((input_tokens >= $prompt_l)::INT) FILTER (t >= (a + b) / 2) AS long_share_late,
    avg(ttft_s) FILTER (t < a + (b - a) / 4) AS ttft_early_s, avg(ttft_s) FILTER (t >= b - (b - a) / 4) AS ttft_late_s,
    sum(cached_tokens) / nullif(sum(input_tokens), 0) AS cached_share
  FROM request, span
), answered AS (
  SELECT source, max(line) AS line FROM request WHERE status BETWEEN 200 AND 399 GROUP BY source
), ended AS (
  SELECT max(n) AS failing FROM (
    SELECT count(r.line) AS n
    FROM answered a
    LEFT JOIN request r ON r.source = a.source AND r.line > a.line AND (r.status >= 500 OR r.status = 0)
    GROUP BY a.source)
)
SELECT requests, ref, input_p50, input_p95, input_p99, input_max, output_p50, output_p95, output_max, context_p50, context_p95, context_max,
  small, medium, large, xlarge, from_t, to_t,
  CASE WHEN to_t > from_t THEN n / (to_t - from_t) END AS per_s, input_tokens, output_tokens, failed, refused, bad_requests, client_gone,
    unanswered, statuses,
  failing AS failing_at_end, long_share_early, long_share_late, ttft_p95_s, ttft_early_s, ttft_late_s, cached_share
FROM counted, size, ended WHERE n > 0
