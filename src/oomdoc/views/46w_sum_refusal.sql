-- says: a start that ended behind its weights and before a pool, without a word that is kept, and by the sum it had to be refused: what its share of the device leaves beside the weights is less than any step takes; no row where it came up, a message says what failed, or the sum leaves room
-- scope: incident
-- share: gpu_memory_utilization
-- budget_bytes: its share of the device
-- weights_bytes: what was loaded
-- left_bytes: the difference, below zero where the weights are more than the budget
-- total_bytes: the device
-- ref: what was loaded
SELECT s.share, s.budget::BIGINT AS budget_bytes, e.weights_bytes, (s.budget - e.weights_bytes)::BIGINT AS left_bytes, s.total AS total_bytes, e.weights_ref AS ref
FROM engine e, failure f, model m,
  LATERAL (SELECT e.gpu_memory_utilization AS share, coalesce(e.total_bytes, m.total_bytes) AS total),
  LATERAL (SELECT share, total, share * total AS budget) s
WHERE f.failed AND f.ooms = 0 AND f.check_name IS NULL AND f.first_error_kind IS NULL AND NOT coalesce(e.served, false)
  AND e.last_milestone IN ('loaded', 'profiled', 'kv-available') AND coalesce(e.kv_available_bytes, 0) <= 0 AND e.kv_pool_tokens IS NULL
  AND s.budget - e.weights_bytes <= $no_step_share * s.budget
