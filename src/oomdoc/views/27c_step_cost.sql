-- says: what the steps between the weights and the pool took of the device of the first rank, by the free memory that the engine prints behind each; no row where it prints none, or no share is known
-- scope: incident
-- begin_bytes: free before the weights
-- loaded_bytes: free behind them
-- last_bytes: free before the pool, at the last step that tells
-- taken_bytes: what the steps between took
-- pool_without_bytes: what would be left for the pool without those steps: free behind the weights less what the share keeps back
-- pool_with_bytes: what is left with them
-- ref: where the last stands
WITH free AS (
  -- a rank that is not told is the only one, or the first
  SELECT g.source, g.line, g.value, m.name AS step
  FROM seen.engine_figure g
  LEFT JOIN (SELECT source, line, min(name) AS name FROM seen.milestone GROUP BY source, line) m USING (source, line)
  WHERE g.name = 'free_now_bytes' AND coalesce(g.rank, 0) = 0
), place AS (
  SELECT source, max(CASE WHEN step = 'loaded' THEN line END) AS loaded FROM free GROUP BY source
), pool AS (
  SELECT p.source, p.loaded, coalesce(min(m.line), 4294967295) AS line
  FROM place p
  LEFT JOIN seen.milestone m
    ON m.source = p.source AND m.line > p.loaded AND m.name IN ('kv-sized', 'kv-available', 'kv-blocks', 'capture-start')
  GROUP BY p.source, p.loaded
), placed AS (
  SELECT f.*, p.loaded, CASE WHEN f.line > p.loaded AND f.line < p.line THEN f.line END AS behind FROM free f JOIN pool p USING (source)
), told AS (
  SELECT source, arg_max(value, CASE WHEN step = 'load-start' AND line < loaded THEN line END) AS begin_bytes,
    max(CASE WHEN line = loaded THEN value END) AS loaded_bytes, arg_max(value, behind) AS last_bytes, max(behind) AS last_line
  FROM placed
  GROUP BY source
)
SELECT begin_bytes::BIGINT AS begin_bytes, loaded_bytes::BIGINT AS loaded_bytes, last_bytes::BIGINT AS last_bytes,
  (loaded_bytes - last_bytes)::BIGINT AS taken_bytes,
  (loaded_bytes - (1 - e.gpu_memory_utilization) * begin_bytes)::BIGINT AS pool_without_bytes,
  (last_bytes - (1 - e.gpu_memory_utilization) * begin_bytes)::BIGINT AS pool_with_bytes, t.source || ':' || last_line AS ref
FROM told t, engine e
WHERE loaded_bytes - last_bytes + e.gpu_memory_utilization * begin_bytes IS NOT NULL
ORDER BY taken_bytes DESC, ref LIMIT 1
