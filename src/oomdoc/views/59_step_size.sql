-- says: tries of one table that failed with an allocation in proportion to the tokens of their step: the least of prompt and step limit; no row where fewer than two such steps are told
-- scope: bundle
-- tries: how many failed so
-- token_bytes: bytes that were asked for per token of the step
-- least_tokens: tokens of the shortest step that failed
-- most_tokens: of the longest
-- least_bytes: what the shortest asked for
-- most_bytes: what the longest asked for
-- held_tokens: tokens of the longest step of another kind that worked; NULL = none as long, or no kinds are told
-- kind: what the failing ones have in common and that one has not
-- ref: where the longest that failed stands
WITH told AS (
  SELECT source, experiment, attempt, min(line) AS line, bool_and(works) AS works,
    max(try_cast(replace(value, ',', '') AS BIGINT)) FILTER (regexp_matches(flag, '^@.*(prompt|input|context).*tokens')) AS prompt,
         max(try_cast(replace(value, ',', '') AS BIGINT)) FILTER (flag = 'max_num_batched_tokens') AS step,
           list(
             DISTINCT CASE WHEN try_cast(replace(value, ',', '') AS DOUBLE) IS NULL AND flag LIKE '@%' THEN flag[2:] || ' ' || value END
           ) AS kinds
  FROM trial GROUP BY source, experiment, attempt
), try AS (
  -- GREATEST and LEAST pass over NULL: a prompt without a known limit is its own step
  SELECT t.*, least(t.prompt, t.step) AS tokens, f.value AS bytes
  FROM told t
  LEFT JOIN (FROM trial_figure WHERE quantity = 'requested_bytes') f USING (source, experiment, attempt)
), failed AS (
  SELECT source, experiment, count(*) AS tries, count(DISTINCT tokens) AS steps, min(bytes / tokens) AS least, max(bytes / tokens) AS most,
    min(tokens) AS least_tokens, max(tokens) AS most_tokens, min(bytes) AS least_bytes, max(bytes) AS most_bytes,
         arg_max(line, tokens) AS line, list_reduce(list(kinds), lambda a, b: list_intersect(a, b)) AS kinds
  FROM try WHERE NOT works AND bytes > 0 AND tokens > 0 GROUP BY ALL
), held AS (
  SELECT f.source, f.experiment, max(t.tokens) AS tokens
  FROM failed f
  JOIN try t USING (source, experiment)
  WHERE t.works AND t.tokens >= f.least_tokens AND len(list_intersect(t.kinds, f.kinds)) < len(f.kinds)
  GROUP BY ALL
)
SELECT f.tries, (f.least + f.most) / 2 AS token_bytes, f.least_tokens, f.most_tokens, f.least_bytes::BIGINT AS least_bytes,
  f.most_bytes::BIGINT AS most_bytes, h.tokens AS held_tokens,
  CASE WHEN h.tokens IS NOT NULL THEN array_to_string(list_sort(f.kinds), ', ') END AS kind, f.source || ':' || f.line AS ref
FROM failed f LEFT JOIN held h USING (source, experiment)
WHERE f.steps >= 2 AND f.most <= (1 + $step_rounding) * f.least AND f.least >= $step_token_bytes ORDER BY f.tries DESC, ref LIMIT 1
