-- says: what the steps between the weights and the pool took of the device, by the free memory that the engine prints behind each; no row where it prints none, or no share is known
-- scope: incident
-- begin_bytes: free before the weights
-- loaded_bytes: free behind them
-- last_bytes: free before the pool, at the last step that tells
-- taken_bytes: what the steps between took
-- pool_without_bytes: what would be left for the pool without those steps: free behind the weights less what the share keeps back
-- pool_with_bytes: what is left with them
-- ref: where the last stands
WITH place AS (
  SELECT source, min(CASE WHEN name = 'load-start' THEN line END) AS begin, min(CASE WHEN name = 'loaded' THEN line END) AS loaded,
    min(CASE WHEN name IN ('kv-sized', 'kv-available', 'kv-blocks', 'capture-start') THEN line END) AS pool
  FROM seen.milestone GROUP BY source
), free AS (
  SELECT g.source, min(CASE WHEN g.line <= p.begin THEN g.value END) AS begin_bytes, min(CASE WHEN g.line = p.loaded THEN g.value END) AS loaded_bytes,
    arg_max(g.value, CASE WHEN g.line > p.loaded AND g.line < coalesce(p.pool, g.line + 1) THEN g.line END) AS last_bytes,
    max(CASE WHEN g.line > p.loaded AND g.line < coalesce(p.pool, g.line + 1) THEN g.source || ':' || g.line END) AS ref
  FROM seen.engine_figure g
  JOIN place p USING (source)
  WHERE g.name = 'free_now_bytes' AND coalesce(g.rank, 0) = 0
  GROUP BY g.source
)
SELECT begin_bytes::BIGINT AS begin_bytes, loaded_bytes::BIGINT AS loaded_bytes, last_bytes::BIGINT AS last_bytes,
  (loaded_bytes - last_bytes)::BIGINT AS taken_bytes,
  (loaded_bytes - (1 - e.gpu_memory_utilization) * begin_bytes)::BIGINT AS pool_without_bytes,
  (last_bytes - (1 - e.gpu_memory_utilization) * begin_bytes)::BIGINT AS pool_with_bytes, f.ref
FROM free f, engine e
WHERE begin_bytes > 0 AND loaded_bytes > 0 AND last_bytes > 0 AND e.gpu_memory_utilization > 0
ORDER BY taken_bytes DESC, f.ref LIMIT 1
