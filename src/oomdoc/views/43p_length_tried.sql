-- says: one row per table of tries in which lengths were tried against a pool of known size: whether length and pool alone decide
-- scope: bundle
-- decides: every try whose length the pool does not hold failed, every other one worked, and both are there
-- longest: the longest length that worked
-- shortest: the shortest that failed
-- pool: tokens that the pool of that try holds
-- ref: where the shortest that failed stands
WITH setting AS (
  SELECT source, experiment, attempt, min(line) AS line, bool_and(works) AS works,
    max(try_cast(replace(value, ',', '') AS BIGINT)) FILTER (flag = 'max_model_len') AS length,
         coalesce(
           string_agg(DISTINCT value, ' ') FILTER (flag = 'kv_cache_dtype'), ''
         ) || '/' || coalesce(string_agg(DISTINCT value, ' ') FILTER (flag = 'tensor_parallel_size'), '') AS kind
  FROM trial WHERE attempt IS NOT NULL GROUP BY ALL
), figure AS (
  SELECT source, experiment, attempt, min(value) FILTER (quantity = 'kv_bytes') AS bytes,
    min(value) FILTER (quantity = 'kv_tokens') AS tokens
  FROM trial_figure
  GROUP BY ALL
), token AS (
  -- what a token takes is the same in all tries of one kind of cache: those that came up tell it
  SELECT source, experiment, kind, median(bytes / nullif(tokens, 0)) AS each
  FROM setting
  JOIN figure USING (source, experiment, attempt)
  GROUP BY ALL
), one AS (
  SELECT s.*, coalesce(f.tokens, f.bytes / t.each) AS pool
  FROM setting s
  JOIN figure f USING (source, experiment, attempt)
  LEFT JOIN token t USING (source, experiment, kind)
)
SELECT bool_and(works = (length <= pool)) AS decides, max(length) FILTER (works) AS longest, min(length) FILTER (NOT works) AS shortest,
  arg_min(pool, length) FILTER (NOT works) AS pool,
  arg_min(source || ':' || line, length) FILTER (NOT works) AS ref
FROM one WHERE pool IS NOT NULL GROUP BY source, experiment HAVING longest IS NOT NULL AND shortest IS NOT NULL
