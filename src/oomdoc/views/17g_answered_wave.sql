-- says: a queue that rose, replicas that were added, and the queue gone while the recording goes on: the scaler did what it is for; no row where that is not so
-- scope: bundle
-- waiting: the most that waited
-- replicas: the most replicas that were told
-- samples: samples behind the wave, in which the queue stayed short
-- ref: the first of them
WITH sample AS (
  -- without a scaler nothing is asked: all samples of a long log side by side are more than a view may hold
  SELECT source, line, waiting FROM engine_stat, (SELECT 1 FROM scaler LIMIT 1) WHERE waiting IS NOT NULL
  UNION ALL
  SELECT source, min(line), sum(value) FROM metric, (SELECT 1 FROM scaler LIMIT 1)
  WHERE name = 'vllm:num_requests_waiting' AND labels IS DISTINCT FROM 'delta'
  GROUP BY source, coalesce(t, line)
), peak AS (
  SELECT source, max(waiting) AS waiting, arg_max(line, waiting) AS line FROM sample GROUP BY source HAVING max(waiting) >= $wave_queue
), gone AS (
  SELECT p.source, p.waiting, min(s.line) AS line
  FROM peak p
  JOIN sample s ON s.source = p.source AND s.line > p.line AND s.waiting <= $wave_gone * p.waiting
  GROUP BY ALL
), behind AS (
  SELECT g.source, g.waiting, g.line, count(*) AS samples, max(s.waiting) AS later, arg_max(s.waiting, s.line) AS last_waiting
  FROM gone g
  JOIN sample s ON s.source = g.source AND s.line >= g.line
  GROUP BY ALL
), fleet AS (
  SELECT max(replicas) AS replicas, arg_min(replicas, (source, line)) AS first_replicas,
    bool_or(kind = 'decision' AND regexp_matches(text, '(?i)above target|scaled? up|SuccessfulRescale')) AS decided
  FROM scaler
), pool AS (
  -- a pool that stood full for a while was the limit, whatever came to help
  SELECT count(*) AS pinned FROM engine_stat WHERE kv_used >= $pool_pinned
)
SELECT b.waiting, f.replicas, b.samples, b.source || ':' || b.line AS ref
FROM behind b, fleet f, pool
WHERE pool.pinned < $wave_samples AND (f.replicas > f.first_replicas OR f.decided) AND b.samples >= $wave_samples
  AND b.later <= $wave_again * b.waiting AND b.last_waiting <= $wave_gone * b.waiting
QUALIFY row_number() OVER (ORDER BY b.waiting DESC, b.source) = 1
