-- says: one row per setting that was tried and with which it worked: alone in a sentence, or the only difference to a try or a start that failed
-- scope: bundle
-- flag: the setting
-- value: what it worked with, as written
-- other: what it failed with; NULL = nobody tells
-- paired: a try that failed is told too, and nothing else differs
-- off: it worked without it, or switched off
-- lower: the number that worked is smaller than the one that failed
-- higher: it is larger
-- text: the try that worked
-- ref: where
WITH try AS (
  SELECT source, experiment, attempt, bool_and(works) AS works, any_value(text) AS text, min(line) AS line
  FROM trial
  WHERE attempt IS NOT NULL
  GROUP BY ALL
), pair AS (
  SELECT a.source, a.experiment, a.attempt AS good, b.attempt AS bad, a.text, a.line
  FROM try a
  JOIN try b ON a.source = b.source AND a.experiment = b.experiment
  WHERE a.works AND NOT b.works
), named AS (
  SELECT DISTINCT flag FROM trial
), differ AS (
  SELECT p.source, p.experiment, p.good, p.bad, p.text, p.line, n.flag, x.value, y.value AS other,
         -- ranks that are laid out in another way are one difference, so are the settings of one feature
         count(
           DISTINCT CASE WHEN n.flag IN ('tensor_parallel_size', 'pipeline_parallel_size', 'data_parallel_size') THEN 'layout'
             WHEN n.flag LIKE '%lora%' THEN 'lora' WHEN n.flag LIKE '%specul%' THEN 'speculative' ELSE n.flag END
         ) OVER (PARTITION BY p.source, p.experiment, p.good, p.bad) AS differences
  FROM pair p CROSS JOIN named n
  LEFT JOIN trial x ON x.source = p.source AND x.experiment = p.experiment AND x.attempt = p.good AND x.flag = n.flag
  LEFT JOIN trial y ON y.source = p.source AND y.experiment = p.experiment AND y.attempt = p.bad AND y.flag = n.flag
  WHERE lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))
), controlled AS (
  SELECT DISTINCT source, line, flag, value, other, text, good FROM differ WHERE differences = 1 AND flag NOT LIKE '@%'
), single AS (
  -- of a sentence by itself the first setting counts, a release is none
  SELECT source, line, flag, value, text, row_number() OVER (PARTITION BY source, line, attempt ORDER BY place) AS nth, attempt
  FROM (SELECT *, row_number() OVER () AS place FROM trial)
  WHERE works AND coalesce(experiment, 0) = 0
    AND flag NOT IN ('version', 'torch', 'driver', 'model', 'served_model_name', 'host', 'port', 'chat_template', 'trust_remote_code')
    AND flag NOT LIKE '@%'
), began AS (
  -- starts of the bundle are tries as well: one came up, whatever its load was like then, another of the same model never did
  SELECT o.start_id, s.source, s.first_line, s.last_line, s.served AND o.outcome NOT IN ('died', 'refused') AS works, o.ref
  FROM outcome o
  JOIN engine_start s USING (start_id)
  WHERE ((s.served AND o.outcome NOT IN ('died', 'refused')) OR (o.outcome IN ('died', 'refused') AND NOT s.served))
    -- one that came up says nothing without another that did not
    AND EXISTS (FROM outcome c JOIN engine_start u USING (start_id) WHERE u.served AND c.outcome NOT IN ('died', 'refused')) AND EXISTS (FROM outcome WHERE outcome IN ('died', 'refused'))
), stated AS (
  SELECT b.start_id, g.flag, arg_max(g.value, g.line) AS value, min(g.line) AS line, bool_or(g.origin = 'logged') AS logged
  FROM began b
  JOIN main.engine_flag g ON g.source = b.source AND g.line BETWEEN b.first_line AND b.last_line
  WHERE g.flag IN ('model', 'dtype', 'quantization', 'tensor_parallel_size', 'pipeline_parallel_size', 'max_model_len', 'max_num_seqs', 'max_num_batched_tokens', 'gpu_memory_utilization', 'enforce_eager', 'kv_cache_dtype',
                   'enable_prefix_caching', 'enable_chunked_prefill', 'enable_lora', 'speculative_config', 'swap_space', 'cpu_offload_gb',
                     'limit_mm_per_prompt', 'load_format')
  GROUP BY b.start_id, g.flag
), logging AS (
  -- a start that prints what differs from its defaults prints all of it
  SELECT DISTINCT b.start_id FROM began b
  JOIN main.engine_flag g ON g.source = b.source AND g.line BETWEEN b.first_line AND b.last_line
  WHERE g.origin = 'logged'
), compared AS (
  SELECT a.start_id AS good, b.start_id AS bad, n.flag, x.value, y.value AS other, coalesce(b.source || ':' || y.line, a.source || ':' || x.line) AS ref,
    x.value IS NOT NULL AND y.value IS NOT NULL AS told,
    CASE WHEN x.value IS NOT NULL AND y.value IS NOT NULL THEN lower(x.value) <> lower(y.value)
      WHEN x.value IS NULL THEN y.logged AND a.start_id IN (FROM logging)
      ELSE x.logged AND b.start_id IN (FROM logging) END AS differs
  FROM began a
  JOIN began b ON a.works AND NOT b.works
  CROSS JOIN (SELECT DISTINCT flag FROM stated) n
  LEFT JOIN stated x ON x.start_id = a.start_id AND x.flag = n.flag
  LEFT JOIN stated y ON y.start_id = b.start_id AND y.flag = n.flag
  WHERE x.value IS NOT NULL OR y.value IS NOT NULL
), lives AS (
  SELECT good, bad, any_value(flag) FILTER (differs) AS flag, any_value(value) FILTER (differs) AS value, any_value(other) FILTER (differs) AS other,
    any_value(ref) FILTER (differs) AS ref
  FROM compared
  -- the model and two more settings are known of both: with fewer nothing says that all else was equal
  GROUP BY good, bad
  HAVING count(*) FILTER (told) >= 4 AND count(*) FILTER (differs) = 1 AND bool_or(flag = 'model' AND value = other)
), typed AS (
  SELECT b.start_id, g.flag, arg_max(g.value, g.line) AS value, min(g.line) AS line
  FROM began b
  JOIN main.engine_flag g ON g.source = b.source AND g.line BETWEEN b.first_line AND b.last_line
  WHERE g.origin = 'command'
  GROUP BY b.start_id, g.flag
), typed_model AS (
  SELECT start_id, value FROM typed WHERE flag = 'model'
), typed_pair AS (
  -- a command states all that was asked for: one of them has a word more, or another value, and all else alike
  SELECT a.start_id AS good, b.start_id AS bad, a.source FROM began a JOIN began b ON a.works AND NOT b.works
  JOIN typed_model m ON m.start_id = a.start_id
  JOIN typed_model o ON o.start_id = b.start_id AND o.value = m.value
), commands AS (
  SELECT p.good, p.bad, any_value(n.flag) FILTER (lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))) AS flag,
    coalesce(any_value(x.value) FILTER (lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))), 'without') AS value,
         any_value(y.value) FILTER (lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))) AS other,
           any_value(p.source || ':' || x.line) AS ref
  FROM (FROM typed_pair ANTI JOIN lives USING (good, bad)) p
  CROSS JOIN (SELECT DISTINCT flag FROM typed) n
  LEFT JOIN typed x ON x.start_id = p.good AND x.flag = n.flag
  LEFT JOIN typed y ON y.start_id = p.bad AND y.flag = n.flag
  GROUP BY p.good, p.bad HAVING count(*) FILTER (lower(coalesce(x.value, '')) <> lower(coalesce(y.value, ''))) = 1
), every AS (
  SELECT flag, value, other, true AS paired, 'the start of ' || good || ' served, that of ' || bad || ' did not' AS text, ref FROM commands
  UNION ALL
  SELECT flag, value, other, true AS paired, 'the start of ' || good || ' served, that of ' || bad || ' did not' AS text, ref FROM lives
  UNION ALL
  SELECT flag, value, other, true AS paired, text, source || ':' || line AS ref FROM controlled
  UNION ALL
  SELECT flag, value, NULL, false, text, source || ':' || line
  FROM single s
  WHERE nth = 1 AND NOT EXISTS (FROM controlled c WHERE c.source = s.source AND c.good = s.attempt)
), read AS (
  SELECT *, try_cast(regexp_extract(replace(value, ',', ''), '^\d+(\.\d+)?') AS DOUBLE) AS v,
    try_cast(regexp_extract(replace(other, ',', ''), '^\d+(\.\d+)?') AS DOUBLE) AS o
  FROM every
)
SELECT flag, value, other, paired,
  coalesce(lower(value) IN ('off', 'false', 'no', 'none', 'disabled', 'without', '0'), other IS NOT NULL) AS off,
       coalesce(v < o, false) AS lower, coalesce(v > o, false) AS higher, text, ref
FROM read
