-- says: what the host had available before and after a start, against the weights and the pool that the engine reports: where it lost as much as they are, device and host are one memory; no row where either is not told
-- scope: incident
-- before_bytes: available on the host, the most that a listing shows
-- left_bytes: available at the last listing
-- fell_bytes: between them
-- plan_bytes: weights and pool of this engine
-- size_bytes: memory of the host
-- one_memory: the host lost what the engine took, no less and not much more
-- exhausted: and next to nothing is left
-- ref: where the last listing stands
WITH listing AS (
  SELECT source, max(bytes) AS before_bytes, arg_max(bytes, step) AS left_bytes, arg_max(source || ':' || line, step) AS ref FROM process_memory WHERE resource = 'host-available' AND bytes > 0 AND step IS NOT NULL GROUP BY source
), host_size AS (
  SELECT max(value) AS bytes FROM note WHERE topic = 'host-size'
)
SELECT l.before_bytes, l.left_bytes, l.before_bytes - l.left_bytes AS fell_bytes, (e.weights_bytes + e.kv_available_bytes)::BIGINT AS plan_bytes, z.bytes::BIGINT AS size_bytes,
  l.before_bytes - l.left_bytes BETWEEN $plan_fell * (e.weights_bytes + e.kv_available_bytes) AND $plan_fell_most * (e.weights_bytes + e.kv_available_bytes)
    AND e.kv_available_bytes >= $plan_fell * e.weights_bytes AS one_memory,
  l.before_bytes - l.left_bytes BETWEEN $plan_fell * (e.weights_bytes + e.kv_available_bytes) AND $plan_fell_most * (e.weights_bytes + e.kv_available_bytes)
    AND e.kv_available_bytes >= $plan_fell * e.weights_bytes AND l.left_bytes <= $host_left * z.bytes AS exhausted, l.ref
FROM listing l, host_size z, engine e WHERE e.world_size = 1 AND e.weights_bytes > 0 AND e.kv_available_bytes > 0
ORDER BY l.left_bytes LIMIT 1
