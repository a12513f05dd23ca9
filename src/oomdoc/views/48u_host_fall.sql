-- says: what the host had available before and after a start, against the weights and the pool that the engine reports: where it lost as much as they are, device and host are one memory; no row where either is not told
-- scope: incident
-- before_bytes: available on the host, the most that a listing or a series of one host shows
-- left_bytes: available at the last of them
-- fell_bytes: between them; where one step of a series is as large as the pool alone, that step
-- plan_bytes: weights and pool of this engine; the pool alone where that is what fell
-- size_bytes: memory of the host; where nobody tells it and the pool alone is seen to go, the most that was available
-- one_memory: the host lost what the engine took, no less and not much more
-- exhausted: and next to nothing is left
-- ref: where the last of them stands
WITH sample AS (
  SELECT source, coalesce(name, variant, '') AS host, bytes, coalesce(elapsed_s, step) AS moment, source || ':' || line AS ref,
    lag(bytes) OVER (PARTITION BY source, coalesce(name, variant, '') ORDER BY coalesce(elapsed_s, step), line) - bytes AS fell
  FROM process_memory WHERE resource = 'host-available' AND bytes > 0 AND coalesce(elapsed_s, step) IS NOT NULL
), plan AS (
  SELECT world_size, weights_bytes, kv_available_bytes AS kv_bytes,
    CASE WHEN world_size = 1 AND kv_available_bytes >= $plan_fell * weights_bytes THEN (weights_bytes + kv_available_bytes)::BIGINT
      END AS whole_bytes
  FROM engine
  WHERE kv_available_bytes > 0
), listing AS (
  -- a pool is taken in one moment: a step of its size among several samples is the pool, on whatever host of the engine
  SELECT source, host, max(bytes) AS before_bytes, arg_max(bytes, moment) AS left_bytes, arg_max(ref, moment) AS ref,
         max(fell) FILTER (
           fell BETWEEN $plan_fell * p.kv_bytes AND $plan_fell_most * p.kv_bytes AND p.kv_bytes >= $pool_seen_to_go
         ) AS one_step, CASE WHEN one_step < max(bytes) - arg_max(bytes, moment) THEN one_step END AS pool_fell
         FROM sample, plan p
         GROUP BY ALL
), host_size AS (
  SELECT max(value) AS bytes FROM note WHERE topic = 'host-size'
), told AS (
  SELECT l.* EXCLUDE (one_step), p.*, z.bytes AS known, l.before_bytes - l.left_bytes AS all_fell,
    coalesce(l.before_bytes - l.left_bytes BETWEEN $plan_fell * p.whole_bytes AND $plan_fell_most * p.whole_bytes, false) AS of_whole
  FROM listing l, host_size z, plan p WHERE p.world_size = 1 AND p.weights_bytes > 0 OR l.pool_fell IS NOT NULL
)
SELECT before_bytes, left_bytes, CASE WHEN of_whole OR pool_fell IS NULL THEN all_fell ELSE pool_fell END AS fell_bytes,
  CASE WHEN of_whole OR pool_fell IS NULL THEN (weights_bytes + kv_bytes)::BIGINT ELSE kv_bytes END AS plan_bytes,
  CASE WHEN of_whole OR pool_fell IS NULL THEN known ELSE coalesce(known, before_bytes) END::BIGINT AS size_bytes,
    of_whole OR pool_fell IS NOT NULL AS one_memory,
  (of_whole OR pool_fell IS NOT NULL)
    AND left_bytes <= $host_left * CASE WHEN of_whole THEN known ELSE coalesce(known, before_bytes) END AS exhausted, ref
FROM told ORDER BY left_bytes LIMIT 1
