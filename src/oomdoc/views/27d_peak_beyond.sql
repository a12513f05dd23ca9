-- says: a start that was refused a pool although its share is none of the small ones, and would have had one without the peak of its profile run, which is far beyond that of a text model's step; no row otherwise
-- scope: incident
-- peak_bytes: what the profile run took beside the weights
-- budget_bytes: what the engine may plan with
-- missing_bytes: what was left for KV, negative
-- ref: where that stands
SELECT e.activation_bytes AS peak_bytes, e.budget AS budget_bytes, e.kv_available_bytes AS missing_bytes, coalesce(e.kv_available_ref, f.check_ref) AS ref
FROM (SELECT *, coalesce(budget_bytes, gpu_memory_utilization * total_bytes)::BIGINT AS budget FROM engine) e, failure f
WHERE f.check_name = 'no-kv-blocks' AND e.activation_bytes >= $peak_rules * e.budget AND e.activation_bytes > -e.kv_available_bytes
  AND e.gpu_memory_utilization >= $low_utilization
