-- says: two starts of the bundle of which the second got what the first may have been refused: weights of the same size and the same settings, or the same model with all settings alike
-- scope: bundle
-- own: the first start
-- other: the second
-- tokens: the pool of the second; NULL = it came up, and its pool is not told
-- weights: weights of the first, per rank; NULL = not told
-- ref: where the second's pool stands, or where it begins
WITH flag AS (
  SELECT s.start_id, g.flag, arg_max(lower(g.value), g.line) AS value, bool_or(g.origin = 'logged') AS logged
  FROM engine_start s
  JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line
  WHERE g.flag IN ('gpu_memory_utilization', 'tensor_parallel_size', 'pipeline_parallel_size', 'max_model_len', 'max_num_seqs', 'max_num_batched_tokens', 'kv_cache_dtype', 'speculative_config', 'limit_mm_per_prompt', 'enable_lora',
    'model', 'version', 'CUDA_VISIBLE_DEVICES') GROUP BY ALL
), logging AS (
  -- a start that prints what differs from its defaults prints all of it: what another has beside that is a difference
  SELECT start_id FROM flag WHERE logged GROUP BY start_id
), figure AS (
  SELECT s.start_id, max(f.value) FILTER (f.name = 'weights_bytes') AS weights,
    -- old releases tell blocks alone
    coalesce(min(f.value) FILTER (f.name = 'kv_pool_tokens'), min(f.value) FILTER (f.name = 'num_gpu_blocks') * 16) AS tokens,
    min(f.source || ':' || f.line) FILTER (f.name IN ('kv_pool_tokens', 'num_gpu_blocks')) AS ref
  FROM engine_start s
  JOIN engine_figure f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line
  WHERE f.name IN ('weights_bytes', 'kv_pool_tokens', 'num_gpu_blocks')
  GROUP BY ALL
), alike AS (
  SELECT p.start_id AS one, q.start_id AS two, count(*) AS settings, bool_or(flag = 'model') AS model
  FROM flag p
  JOIN flag q USING (flag, value)
  GROUP BY ALL
), pair AS (
  SELECT b.start_id AS other, a.start_id AS own, b.tokens, a.weights, b.ref
  FROM figure a
  JOIN figure b ON b.start_id <> a.start_id AND b.tokens > 0 AND abs(b.weights - a.weights) <= $same_weights * a.weights
    -- the model may have another name in another place: weights of one size are one model
    -- a share that is told of one start only is not alike: of the other it is unknown, or its default
    AND NOT EXISTS (
      SELECT flag FROM flag
      WHERE start_id IN (a.start_id, b.start_id) AND flag NOT IN ('model', 'version')
      GROUP BY flag
      HAVING count(DISTINCT value) > 1
        OR (count(*) < 2 AND bool_or(logged) AND flag <> 'gpu_memory_utilization' AND a.start_id IN (FROM logging) AND b.start_id IN (FROM logging))
        OR (flag = 'gpu_memory_utilization' AND count(*) < 2 AND NOT (
        -- an excerpt that tells no setting at all is of the one command that the bundle has
        EXISTS (FROM engine_start x WHERE x.start_id IN (a.start_id, b.start_id) AND x.start_id NOT IN (SELECT start_id FROM flag))
          AND (SELECT count(DISTINCT value) = 1 FROM main.engine_flag WHERE flag = 'gpu_memory_utilization')
      ))
    )
  UNION ALL
  SELECT b.start_id, a.start_id, NULL, NULL, b.source || ':' || greatest(b.first_line, 1)
  FROM engine_start a
  JOIN engine_start b ON b.start_id <> a.start_id AND b.served
  JOIN alike c ON c.one = a.start_id AND c.two = b.start_id AND c.model AND c.settings >= $settings_alike
  WHERE c.settings = (SELECT count(*) FROM flag WHERE start_id = a.start_id)
    AND c.settings = (SELECT count(*) FROM flag WHERE start_id = b.start_id)
    -- who runs out of memory once it is up got its pool from luck or from a plan that is too large
    AND NOT EXISTS (FROM failure_event e WHERE e.start_id = b.start_id AND e.grade >= 2)
)
SELECT own, other, tokens::BIGINT AS tokens, weights::BIGINT AS weights, ref FROM pair
