-- says: two starts of the same weights and share, of which one got a smaller pool by what its device held before anything of it was loaded; no row without such a pair, or where the two amounts differ
-- scope: incident
-- small_tokens: tokens of the smaller pool
-- large_tokens: of the larger
-- missing_bytes: what the smaller lacks, per rank
-- held_bytes: what the device held at the last sample before the start; where no clock tells which that is, a level that it held before it came to hold weights beside it
-- gpu: device index
-- ref: where the start with the smaller pool begins
WITH pair AS (
  SELECT a.start_id, a.t, a.tokens AS small, b.tokens AS large, a.weights_bytes AS weights, s.source || ':' || greatest(s.first_line, 1) AS ref
  FROM start_pool a JOIN start_pool b ON b.start_id <> a.start_id AND a.model IS NOT DISTINCT FROM b.model AND a.shards IS NOT DISTINCT FROM b.shards
    AND a.utilization IS NOT DISTINCT FROM b.utilization AND abs(a.weights_bytes - b.weights_bytes) <= $same_weights * b.weights_bytes
  JOIN engine_start s ON s.start_id = a.start_id
  WHERE a.tokens <= $pool_shrunk * b.tokens
), held AS (
  SELECT p.*, g.source AS sampled_in, g.gpu, arg_max(g.used_bytes, g.t) AS bytes
  FROM pair p JOIN gpu_sample g ON g.t BETWEEN p.t - $before_a_start_s AND p.t
  WHERE g.used_bytes IS NOT NULL
  GROUP BY ALL
), level AS (
  -- readings without a year, or by a clock of another zone: the amount tells what the hour does not
  SELECT p.*, g.source AS sampled_in, g.gpu, g.used_bytes, g.line
  FROM pair p, expectation x, gpu_sample g
  WHERE abs(g.used_bytes - (p.large - p.small) * x.kv_bytes_per_token) <= $stood_is_lacking * g.used_bytes
    AND NOT EXISTS (FROM held k WHERE k.sampled_in = g.source)
), stood AS (
  SELECT l.* EXCLUDE (used_bytes, line), median(l.used_bytes)::BIGINT AS bytes
  FROM level l
  GROUP BY ALL
  HAVING count(*) >= $stood_samples
    AND EXISTS (FROM gpu_sample n WHERE n.source = l.sampled_in AND n.gpu IS NOT DISTINCT FROM l.gpu AND n.line > max(l.line) AND n.used_bytes >= min(l.used_bytes) + l.weights)
)
SELECT h.small::BIGINT AS small_tokens, h.large::BIGINT AS large_tokens, ((h.large - h.small) * x.kv_bytes_per_token)::BIGINT AS missing_bytes, h.bytes AS held_bytes, h.gpu, h.ref
FROM (FROM held UNION ALL BY NAME FROM stood) h, expectation x
WHERE h.bytes >= $no_context_bytes AND abs(h.bytes - (h.large - h.small) * x.kv_bytes_per_token) <= $about_held * h.bytes
ORDER BY abs(h.bytes - (h.large - h.small) * x.kv_bytes_per_token), h.ref, h.gpu LIMIT 1
