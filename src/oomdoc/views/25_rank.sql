-- says: how the ranks of the engine in focus differ; no row where fewer than two ranks are told apart
-- scope: incident
-- ranks: ranks with a figure
-- kv_min_bytes: smallest KV budget
-- kv_max_bytes: largest KV budget
-- kv_ref: where the smallest stands
-- kv_spread_bytes: largest - smallest
-- weights_spread: (largest - smallest) / largest weights
-- free_spread_bytes: difference of free memory at start
-- uneven: the difference matters: over 1 GiB and 15 % of the largest budget
-- pids: worker processes seen
WITH kv AS (
  SELECT coalesce(process, '') || '/' || coalesce(pid, 0) || '/' || coalesce(rank, -1) AS who, min(value) AS value, min(source || ':' || line) AS ref FROM seen.engine_figure WHERE name = 'kv_available_bytes' GROUP BY ALL
), weights AS (
  SELECT coalesce(process, '') || '/' || coalesce(pid, 0) AS who, max(value) AS value FROM seen.engine_figure WHERE name = 'weights_bytes' GROUP BY ALL
), free AS (
  SELECT coalesce(process, '') || '/' || coalesce(pid, 0) AS who, min(value) AS value FROM seen.engine_figure WHERE name = 'free_bytes' GROUP BY ALL
), folded AS (
  SELECT (SELECT count(*) FROM kv) AS ranks, (SELECT min(value) FROM kv) AS kv_min, (SELECT max(value) FROM kv) AS kv_max, (SELECT min_by(ref, value) FROM kv) AS kv_ref,
    (SELECT (max(value) - min(value)) / nullif(max(value), 0) FROM weights) AS weights_spread, (SELECT max(value) - min(value) FROM free) AS free_spread, (SELECT count(*) FROM weights) AS weight_ranks
)
SELECT greatest(ranks, weight_ranks) AS ranks, kv_min::BIGINT AS kv_min_bytes, kv_max::BIGINT AS kv_max_bytes, kv_ref, (kv_max - kv_min)::BIGINT AS kv_spread_bytes, weights_spread, free_spread::BIGINT AS free_spread_bytes,
  CASE WHEN ranks >= 2 THEN kv_max - kv_min > 1073741824 AND kv_max - kv_min > 0.15 * abs(kv_max) END AS uneven, greatest(ranks, weight_ranks) AS pids
FROM folded WHERE ranks >= 2 OR weight_ranks >= 2
