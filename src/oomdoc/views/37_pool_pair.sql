-- says: two starts of the same weights, by their logs or by what scrapes of one server tell of its pool, of which one got a much smaller pool, and who else is on the device; no row without such a pair
-- scope: bundle
-- small_tokens: tokens of the smaller pool
-- large_tokens: of the larger
-- weights_bytes: weights of both, per rank; NULL = only scrapes tell of them
-- processes: processes on the device with most of them, and the engine where it is not listed any more; NULL = no list
-- others_bytes: what they hold without the largest of them, which may be the engine, or all of them where it is gone
-- total_bytes: memory of the device, at least what its processes hold; NULL = nobody says
-- ref: where the smaller pool stands
-- others_ref: where the processes are listed
WITH figure AS (
  SELECT source, line, name, value,
    last_value(CASE WHEN name = 'weights_bytes' THEN value END IGNORE NULLS) OVER (
      PARTITION BY source ORDER BY line ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS weights
  FROM (
    SELECT source, line, name, value FROM engine_figure WHERE name IN ('weights_bytes', 'kv_pool_tokens')
    -- a start that is refused for its length says how many tokens it could have stored
    UNION ALL SELECT source, line, 'kv_pool_tokens', coalesce(pool_tokens, estimated_max_model_len) FROM startup_check WHERE name = 'kv-below-max-model-len'
  )
), pool AS (
  SELECT source, line, weights, value AS tokens FROM figure WHERE name = 'kv_pool_tokens' AND value > 0
), share AS (
  -- what a pool was planned with, where its start tells it
  SELECT p.source, p.line, max(t.utilization) AS utilization
  FROM pool p
  JOIN engine_start s ON s.source = p.source AND p.line BETWEEN s.first_line AND s.last_line
  JOIN start_pool t USING (start_id)
  GROUP BY ALL
), scrape AS (
  -- the settings of a cache are one series: only its blocks change from start to start
  SELECT source || ':' || line AS ref, t, regexp_replace(labels, 'num_gpu_blocks="[0-9]+",?', '') AS settings,
    try_cast(regexp_extract(labels, 'num_gpu_blocks="([0-9]+)"', 1) AS BIGINT) * try_cast(regexp_extract(labels, 'block_size="([0-9]+)"', 1) AS BIGINT) AS tokens
  FROM metric
  WHERE name LIKE '%cache_config_info' AND labels LIKE '%num_gpu_blocks=%' AND labels LIKE '%block_size=%'
), pair AS (
  SELECT a.tokens AS small, b.tokens AS large, a.weights, a.source || ':' || a.line AS ref FROM pool a JOIN pool b
    ON a.tokens <= $pool_shrunk * b.tokens AND abs(a.weights - b.weights) <= $same_weights * b.weights
    -- who asks for a smaller share gets a smaller pool
    AND NOT EXISTS (
      FROM share x JOIN share y ON x.utilization < y.utilization
      WHERE x.source = a.source AND x.line = a.line AND y.source = b.source AND y.line = b.line
    )
  UNION ALL
  SELECT a.tokens, b.tokens, NULL, a.ref FROM scrape a JOIN scrape b ON a.settings = b.settings AND a.t <> b.t AND a.tokens > 0 AND a.tokens <= $pool_shrunk * b.tokens
  ORDER BY small / large, ref LIMIT 1
), listed AS (
  -- a listing may be pasted twice
  SELECT source, coalesce(gpu::VARCHAR, gpu_uuid) AS gpu, t, pid, max(used_bytes) AS used, min(line) AS line
  FROM gpu_process
  WHERE coalesce(type, 'C') <> 'G' AND used_bytes > 0
  GROUP BY ALL
), beside AS (
  SELECT count(*) AS processes, sum(used) - max(used) AS others, sum(used) AS used, max(used) AS largest, min(source || ':' || line) AS ref
  FROM listed
  GROUP BY source, gpu, t
  ORDER BY others DESC
  LIMIT 1
)
SELECT small::BIGINT AS small_tokens, large::BIGINT AS large_tokens, weights::BIGINT AS weights_bytes,
  -- of a list in which nobody holds as much as the weights the engine is gone already
  beside.processes + coalesce(largest < weights, false)::INT AS processes, CASE WHEN largest < weights THEN beside.used ELSE others END::BIGINT AS others_bytes, coalesce(d.total_max_bytes, beside.used)::BIGINT AS total_bytes, pair.ref, beside.ref AS others_ref
FROM pair LEFT JOIN beside ON true LEFT JOIN device d ON true
