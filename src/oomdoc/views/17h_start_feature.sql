-- says: which features with weights of their own each engine start was told to load, and the line that tells what it loaded
-- scope: bundle
-- start_id: engine start
-- lora: adapters were on; NULL = no flag speaks of them
-- slots: adapters at once times their largest rank, which is what their room grows with
-- draft: a draft model; NULL = no flag speaks of one
-- loaded_ref: the first line that tells the weights; NULL = none
SELECT s.start_id, bool_or(g.flag = 'enable_lora' AND lower(g.value) = 'true') AS lora,
  coalesce(max(try_cast(g.value AS BIGINT)) FILTER (g.flag = 'max_loras'), 1) * coalesce(max(try_cast(g.value AS BIGINT)) FILTER (g.flag = 'max_lora_rank'), 16) AS slots,
  bool_or(g.flag IN ('speculative_config', 'speculative_model') AND lower(g.value) NOT IN ('none', 'null', '')) AS draft,
  (SELECT min(x.source || ':' || x.line) FROM engine_figure x
   WHERE x.name = 'weights_bytes' AND x.source = s.source AND x.line BETWEEN s.first_line AND s.last_line) AS loaded_ref
FROM engine_start s
JOIN engine_flag g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line
GROUP BY s.start_id, s.source, s.first_line, s.last_line
