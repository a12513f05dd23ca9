-- says: how long a first token took with few and with many distinct prefixes, as somebody swept their number and nothing else; no row where nobody did, or where the rows tell what was found (`rotation`)
-- scope: bundle
-- tries: how many numbers were tried
-- unit: what was counted: prefixes, prompts, documents
-- few: the most of them with which a first token took about as long as with the fewest
-- few_ttft_s: seconds to the first token there
-- many: the fewest beyond it with which it took several times as long
-- many_ttft_s: seconds to the first token there
-- ref: where the row of the many stands
WITH setting AS (
  SELECT source, experiment, attempt, flag, max(try_cast(replace(value, ',', '') AS DOUBLE)) AS n
  FROM trial
  WHERE flag LIKE '@%'
  GROUP BY ALL
), told AS (
  -- a median stands below its percentiles
  SELECT source, experiment, attempt, min(value) FILTER (quantity = 'ttft_s') AS ttft_s, min(line) AS line
  FROM trial_figure
  GROUP BY ALL
  HAVING count(*) FILTER (quantity = 'hit_rate') = 0
), try AS (
  SELECT source, experiment, attempt, flag, n, ttft_s, line, first_value(ttft_s) OVER (PARTITION BY source, experiment, flag ORDER BY n, line) AS first_s,
    count(n) OVER (PARTITION BY source, experiment, flag) AS tries
  FROM setting
  JOIN told USING (source, experiment, attempt)
  WHERE regexp_matches(
    flag, '^@(?:n_?|num_?|number_of_)?(?:distinct_|different_|unique_)?(?:tenant_|system_|shared_)?(?:prefix(?:es)?|prompts|documents?|docs|books?|repos(?:itories)?)$'
  )
), grown AS (
  -- a row with more callers or longer prompts than another is another load
  SELECT source, experiment, a.attempt, b.attempt AS more, flag
  FROM setting a
  JOIN setting b USING (source, experiment, flag)
  WHERE b.n > a.n
)
SELECT f.tries, replace(substr(flag, 2), '_', ' ') AS unit, f.n::BIGINT AS few, f.ttft_s AS few_ttft_s, m.n::BIGINT AS many, m.ttft_s AS many_ttft_s,
  source || ':' || m.line AS ref
FROM try f
JOIN try m USING (source, experiment, flag)
WHERE f.tries >= $sweep_tries AND f.ttft_s <= $first_token_alike * f.first_s AND m.n > f.n AND m.ttft_s >= $load_slower * f.ttft_s
  AND NOT EXISTS (
    SELECT 1 FROM grown g
    WHERE (g.source, g.experiment, g.attempt, g.more) = (f.source, f.experiment, f.attempt, m.attempt) AND g.flag <> f.flag
  )
ORDER BY f.n DESC, m.n, ref
LIMIT 1
