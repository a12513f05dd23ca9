-- says: two starts of the same weights and share, of which one got a smaller pool by what its device held before anything of it was loaded; no row without such a pair, or where the two amounts differ
-- scope: incident
-- small_tokens: tokens of the smaller pool
-- large_tokens: of the larger
-- missing_bytes: what the smaller lacks, per rank
-- held_bytes: what the device held at the last sample before the start
-- gpu: device index
-- ref: where the start with the smaller pool begins
WITH pair AS (
  SELECT a.start_id, a.t, a.tokens AS small, b.tokens AS large, s.source || ':' || greatest(s.first_line, 1) AS ref
  FROM start_pool a JOIN start_pool b ON b.start_id <> a.start_id AND a.model IS NOT DISTINCT FROM b.model AND a.shards IS NOT DISTINCT FROM b.shards
    AND a.utilization IS NOT DISTINCT FROM b.utilization AND abs(a.weights_bytes - b.weights_bytes) <= $same_weights * b.weights_bytes
  JOIN engine_start s ON s.start_id = a.start_id
  WHERE a.tokens <= $pool_shrunk * b.tokens AND a.t IS NOT NULL
), held AS (
  SELECT p.*, g.source AS sampled_in, g.gpu, arg_max(g.used_bytes, g.t) AS bytes
  FROM pair p JOIN gpu_sample g ON g.t BETWEEN p.t - $before_a_start_s AND p.t
  WHERE g.used_bytes IS NOT NULL
  GROUP BY ALL
)
SELECT h.small::BIGINT AS small_tokens, h.large::BIGINT AS large_tokens, ((h.large - h.small) * x.kv_bytes_per_token)::BIGINT AS missing_bytes, h.bytes AS held_bytes, h.gpu, h.ref
FROM held h, expectation x
WHERE h.bytes >= $no_context_bytes AND abs(h.bytes - (h.large - h.small) * x.kv_bytes_per_token) <= $about_held * h.bytes
ORDER BY abs(h.bytes - (h.large - h.small) * x.kv_bytes_per_token), h.ref, h.gpu LIMIT 1
