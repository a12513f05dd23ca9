-- says: the start in focus was refused a pool, and another start of the bundle with weights of the same size and the same settings got one; no row without such a pair
-- scope: incident
-- tokens: the pool of the other start
-- weights_bytes: weights of both, per rank
-- utilization: share of the card that both plan with
-- other_ref: where the other start's pool stands
-- ref: the refusal
WITH flag AS (
  SELECT s.start_id, g.flag, arg_max(lower(g.value), g.line) AS value FROM engine_start s JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line
  WHERE g.flag IN ('gpu_memory_utilization', 'tensor_parallel_size', 'pipeline_parallel_size', 'max_model_len', 'max_num_seqs', 'max_num_batched_tokens', 'kv_cache_dtype', 'speculative_config', 'limit_mm_per_prompt', 'enable_lora') GROUP BY ALL
), figure AS (
  SELECT s.start_id, max(f.value) FILTER (f.name = 'weights_bytes') AS weights, min(f.value) FILTER (f.name = 'kv_pool_tokens') AS tokens, min(f.source || ':' || f.line) FILTER (f.name = 'kv_pool_tokens') AS ref
  FROM engine_start s JOIN engine_figure f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line WHERE f.name IN ('weights_bytes', 'kv_pool_tokens') GROUP BY ALL
)
SELECT b.tokens::BIGINT AS tokens, a.weights::BIGINT AS weights_bytes, e.gpu_memory_utilization AS utilization, b.ref AS other_ref, x.check_ref AS ref
FROM focus f JOIN incident i USING (incident) JOIN failure x ON x.check_name = 'no-kv-blocks' JOIN engine e ON true
JOIN figure a ON a.start_id = i.start_id JOIN figure b ON b.start_id <> a.start_id AND b.tokens > 0 AND abs(b.weights - a.weights) <= $same_weights * a.weights
-- a setting that only one of the two tells may be the same; one that both tell is
WHERE NOT EXISTS (FROM cut_card)  -- on an instance of a card the other start may have had more
  AND NOT EXISTS (FROM flag p JOIN flag q USING (flag) WHERE p.start_id = a.start_id AND q.start_id = b.start_id AND p.value <> q.value)
ORDER BY b.tokens DESC, b.ref LIMIT 1
