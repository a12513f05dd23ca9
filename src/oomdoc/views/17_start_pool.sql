-- says: what each engine start left for KV, and whether its graphs were compiled in it or came from the cache
-- scope: bundle
-- start_id: engine start
-- t: when it began
-- weights_bytes: loaded per rank, the largest
-- available_bytes: for KV, the smallest rank
-- tokens: what the pool holds, as printed, or the longest request times the concurrency
-- model: as the start names it; NULL = not told
-- shards: ranks that the layers are cut over; 1 where settings are told and none of them says more; NULL = not told
-- utilization: share of the device it asked for, as set or as the engine tells it; NULL = not told
-- utilization_ref: where
-- compiled: true = its graphs were compiled, false = they came from the cache of an earlier start; NULL = the log does not tell
-- cold: it compiled, and a later start of the same weights, with the cache filled, had at least a tenth more for KV
WITH told AS (
  SELECT s.start_id, bool_or(m.name = 'compiled') AS compiled, bool_or(m.name = 'compile-cached') AS cached
  FROM engine_start s
  JOIN milestone m ON m.source = s.source AND m.line BETWEEN s.first_line AND s.last_line
  WHERE m.name IN ('compiled', 'compile-cached')
  GROUP BY ALL
), figure AS (
  SELECT s.start_id, max(f.value) FILTER (f.name = 'weights_bytes') AS weights_bytes,
    min(f.value) FILTER (f.name = 'kv_available_bytes') AS available_bytes,
         coalesce(
           min(f.value) FILTER (f.name = 'kv_pool_tokens'),
           min(f.value) FILTER (f.name = 'max_concurrency') * max(f.value) FILTER (f.name = 'concurrency_tokens')
         ) AS tokens, max(f.value) FILTER (f.name = 'gpu_memory_utilization') AS utilization,
    min(f.source || ':' || f.line) FILTER (f.name = 'gpu_memory_utilization') AS utilization_ref
  FROM engine_start s JOIN engine_figure f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line
  WHERE f.name IN ('weights_bytes', 'kv_available_bytes', 'kv_pool_tokens', 'max_concurrency', 'concurrency_tokens', 'gpu_memory_utilization') GROUP BY ALL
), flag AS (
  SELECT s.start_id,
    coalesce(
      max(try_cast(g.value AS INTEGER)) FILTER (g.flag = 'tensor_parallel_size'),
      CASE WHEN bool_or(g.flag IN ('data_parallel_size', 'pipeline_parallel_size', 'max_model_len')) THEN 1 END
    ) AS shards,
         arg_max(g.value, g.line) FILTER (g.flag = 'model') AS model,
    max(try_cast(g.value AS DOUBLE)) FILTER (g.flag = 'gpu_memory_utilization') AS share,
    min(g.source || ':' || g.line) FILTER (g.flag = 'gpu_memory_utilization') AS share_ref
  FROM engine_start s JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line GROUP BY ALL
), start AS (
  SELECT s.start_id, s.source, s.first_line, s.t, weights_bytes, available_bytes, tokens, model, shards, coalesce(share, utilization) AS utilization,
    coalesce(share_ref, utilization_ref) AS utilization_ref,
    CASE WHEN cached THEN false WHEN told.compiled THEN true END AS compiled
  FROM engine_start s LEFT JOIN told USING (start_id) LEFT JOIN figure USING (start_id) LEFT JOIN flag USING (start_id)
)
SELECT a.start_id, a.t, a.weights_bytes, a.available_bytes, a.tokens, a.model, a.shards, a.utilization, a.utilization_ref, a.compiled,
  coalesce(a.compiled, false) AND EXISTS (
    FROM start b WHERE b.compiled = false AND b.available_bytes > 0 AND b.available_bytes >= $warm_gains * greatest(0, a.available_bytes)
    AND abs(b.weights_bytes - a.weights_bytes) <= $same_weights * a.weights_bytes
    AND CASE WHEN b.source = a.source THEN b.first_line > a.first_line ELSE b.t > a.t END) AS cold
FROM start a
