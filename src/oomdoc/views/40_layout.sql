-- says: one row per layout of shards, stages and replicas that was measured: a start in a log, or tries of somebody's table
-- scope: bundle
-- place: what may be compared: all starts of logs are one place, each table is one
-- ref: where it stands
-- model: as told; NULL = not told
-- others: the other settings of a try; empty for a start
-- tp: shards (tensor_parallel_size); NULL = not told
-- pp: pipeline stages; 1 where none are told
-- dp: replicas; 1 where none are told
-- running: requests that ran, the median of its statistics lines; NULL = not told
-- tokens_s: generated tokens per second of the whole layout, the median of its statistics lines or what a table tells
-- kv_bytes: room for KV on a rank, the smallest
-- kv_tokens: tokens that the pool holds
-- weights_bytes: weights on a rank, the largest
-- pool_set: the pool was given in bytes and not left to a share of the card
-- used_bytes: held on a device, the largest; NULL = not told
-- added_bytes: what comes with every rank, outside torch and in captured graphs, the largest; NULL where either is not told
WITH figure AS (
  SELECT s.start_id, f.*, coalesce(f.process, '') || '/' || coalesce(f.rank, -1) AS seat,
         f.rank IS NOT NULL OR regexp_matches(coalesce(f.process, ''), '(?i)worker') AS of_rank
  FROM engine_start s JOIN engine_figure f ON f.source = s.source AND f.line BETWEEN s.first_line AND s.last_line
  WHERE f.name IN (
    'weights_bytes', 'kv_available_bytes', 'kv_reserved_bytes', 'kv_pool_tokens', 'max_concurrency', 'concurrency_tokens',
    'non_torch_bytes', 'graph_bytes'
  )
), loading AS (
  -- where a rank that has loaded loads again, as another process or with another crew, another engine begins
  SELECT *, lag(pid) OVER (PARTITION BY start_id, seat ORDER BY line) AS pid_before,
    lag(of_rank) OVER (PARTITION BY start_id ORDER BY line) AS crew_before
  FROM figure WHERE name = 'weights_bytes'
), begun AS (
  SELECT start_id, source, line AS first_line FROM loading WHERE pid <> pid_before OR of_rank <> crew_before
  UNION SELECT start_id, source, first_line FROM engine_start
), run AS (
  SELECT *, coalesce(lead(first_line) OVER (PARTITION BY start_id ORDER BY first_line) - 1, 4294967295) AS end_line,
    count(*) OVER (PARTITION BY start_id) AS runs
  FROM begun
), told AS (
  SELECT r.start_id, r.source, r.first_line, r.runs, count(DISTINCT f.seat) FILTER (f.of_rank) AS seats,
    bool_or(f.name = 'weights_bytes' AND f.process = 'EngineCore') AS alone,
         min(f.value) FILTER (f.name IN ('kv_available_bytes', 'kv_reserved_bytes')) AS kv_bytes,
           bool_or(f.name = 'kv_reserved_bytes') AS pool_set, max(f.value) FILTER (f.name = 'weights_bytes') AS weights_bytes,
         max(f.value) FILTER (f.name = 'non_torch_bytes') + max(f.value) FILTER (f.name = 'graph_bytes') AS added_bytes,
         coalesce(
           min(f.value) FILTER (f.name = 'kv_pool_tokens'),
           min(f.value) FILTER (f.name = 'max_concurrency') * max(f.value) FILTER (f.name = 'concurrency_tokens')
         ) AS kv_tokens
  FROM run r LEFT JOIN figure f ON f.start_id = r.start_id AND f.line BETWEEN r.first_line AND r.end_line GROUP BY ALL
), stat AS (
  SELECT r.start_id, r.first_line, median(x.running) AS running, median(x.generation_tokens_per_s) AS tokens_s
  FROM run r
  JOIN engine_start s USING (start_id)
  JOIN engine_stat x ON x.source = r.source AND x.line BETWEEN r.first_line AND least(r.end_line, s.last_line)
  WHERE x.running > 0 AND x.generation_tokens_per_s > 0 GROUP BY ALL HAVING count(*) >= $layout_samples
), flag AS (
  SELECT s.start_id, max(try_cast(g.value AS INTEGER)) FILTER (g.flag = 'tensor_parallel_size') AS tp,
    max(try_cast(g.value AS INTEGER)) FILTER (g.flag = 'pipeline_parallel_size') AS pp,
         max(try_cast(g.value AS INTEGER)) FILTER (g.flag = 'data_parallel_size') AS dp,
           arg_max(g.value, g.line) FILTER (g.flag = 'model') AS model, bool_or(g.flag = 'kv_cache_memory_bytes') AS pool_set
  FROM engine_start s JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line GROUP BY ALL
), tried AS (
  SELECT source, experiment, attempt, max(try_cast(value AS INTEGER)) FILTER (flag = 'tensor_parallel_size') AS tp,
    max(try_cast(value AS INTEGER)) FILTER (flag = 'pipeline_parallel_size') AS pp,
         max(try_cast(value AS INTEGER)) FILTER (flag = 'data_parallel_size') AS dp, any_value(value) FILTER (flag = 'model') AS model,
           bool_or(flag = 'kv_cache_memory_bytes') AS pool_set, min(line) AS line,
         coalesce(
           string_agg(DISTINCT flag || '=' || value, ' ' ORDER BY flag || '=' || value) FILTER (
             flag NOT IN ('tensor_parallel_size', 'pipeline_parallel_size', 'data_parallel_size', 'model', 'kv_cache_memory_bytes')
               AND flag NOT LIKE '@%'
           ), ''
         ) AS others
  FROM trial WHERE attempt IS NOT NULL GROUP BY source, experiment, attempt
), measured AS (
  SELECT source, experiment, attempt, max(value) FILTER (quantity = 'tokens_s') AS tokens_s,
    min(value) FILTER (quantity = 'kv_bytes') AS kv_bytes, min(value) FILTER (quantity = 'kv_tokens') AS kv_tokens,
         max(value) FILTER (quantity = 'weights_bytes') AS weights_bytes, max(value) FILTER (quantity = 'gpu_bytes') AS used_bytes,
         max(value) FILTER (quantity = 'non_torch_bytes') + max(value) FILTER (quantity = 'graph_bytes') AS added_bytes
  FROM trial_figure WHERE quantity IS NOT NULL GROUP BY source, experiment, attempt
)
SELECT 'logs' AS place, t.source || ':' || greatest(t.first_line, 1) AS ref, g.model, '' AS others,
       CASE WHEN t.runs = 1 AND g.tp IS NOT NULL THEN g.tp WHEN t.seats >= 2 THEN t.seats WHEN t.alone AND t.seats = 0 THEN 1 END AS tp,
         coalesce(g.pp, 1) AS pp, coalesce(g.dp, 1) AS dp,
       x.running, x.tokens_s, t.kv_bytes, t.kv_tokens, t.weights_bytes, coalesce(t.pool_set, g.pool_set, false) AS pool_set,
         NULL::DOUBLE AS used_bytes, t.added_bytes
FROM told t
LEFT JOIN stat x USING (start_id, first_line)
LEFT JOIN flag g USING (start_id)
WHERE coalesce(x.tokens_s, t.kv_bytes, t.kv_tokens, t.weights_bytes) IS NOT NULL
UNION ALL
SELECT t.source || '/' || t.experiment, t.source || ':' || min(t.line), t.model, t.others, t.tp, coalesce(t.pp, 1), coalesce(t.dp, 1), NULL,
  max(m.tokens_s), min(m.kv_bytes), min(m.kv_tokens), max(m.weights_bytes), coalesce(bool_or(t.pool_set), false), max(m.used_bytes),
  max(m.added_bytes)
FROM tried t
JOIN measured m USING (source, experiment, attempt)
WHERE coalesce(t.tp, t.pp, t.dp) IS NOT NULL
GROUP BY t.source, t.experiment, t.model, t.others, t.tp, t.pp, t.dp
