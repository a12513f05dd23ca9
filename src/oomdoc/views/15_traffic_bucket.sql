-- says: recorded requests by size: one row per measure (input, output, context) and bucket
-- scope: bundle
-- measure: input, output or context (prompt + generation)
-- bucket: S, M, L, XL
-- up_to_tokens: upper bound, NULL for XL
-- requests: how many
-- share: of all requests
-- token_share: of all tokens of the measure
WITH bound(measure, bucket, from_tokens, up_to_tokens, place) AS (VALUES
  ('input', 'S', 0, $prompt_m, 1), ('input', 'M', $prompt_m, $prompt_l, 2), ('input', 'L', $prompt_l, $prompt_xl, 3),
    ('input', 'XL', $prompt_xl, NULL, 4),
  ('output', 'S', 0, $output_m, 1), ('output', 'M', $output_m, $output_l, 2), ('output', 'L', $output_l, $output_xl, 3),
    ('output', 'XL', $output_xl, NULL, 4),
  ('context', 'S', 0, $prompt_m, 1), ('context', 'M', $prompt_m, $prompt_l, 2), ('context', 'L', $prompt_l, $prompt_xl, 3),
    ('context', 'XL', $prompt_xl, NULL, 4)
), counted AS (
  -- by place: to group by the names of the buckets would take twice as long
  SELECT 'input' AS measure, CASE WHEN n < $prompt_m THEN 1 WHEN n < $prompt_l THEN 2 WHEN n < $prompt_xl THEN 3 ELSE 4 END AS place,
    count(*) AS requests, sum(n) AS tokens
  FROM (SELECT input_tokens AS n FROM request WHERE input_tokens IS NOT NULL) GROUP BY place
  UNION ALL
  SELECT 'output', CASE WHEN n < $output_m THEN 1 WHEN n < $output_l THEN 2 WHEN n < $output_xl THEN 3 ELSE 4 END AS place, count(*), sum(n)
  FROM (SELECT output_tokens AS n FROM request WHERE output_tokens IS NOT NULL) GROUP BY place
  UNION ALL
  SELECT 'context', CASE WHEN n < $prompt_m THEN 1 WHEN n < $prompt_l THEN 2 WHEN n < $prompt_xl THEN 3 ELSE 4 END AS place, count(*),
    sum(n)
  FROM (SELECT input_tokens + output_tokens AS n FROM request WHERE input_tokens + output_tokens IS NOT NULL) GROUP BY place
)
SELECT b.measure, b.bucket, b.up_to_tokens, coalesce(requests, 0)::BIGINT AS requests,
  coalesce(requests / sum(requests) OVER (PARTITION BY b.measure), 0) AS share,
    coalesce(tokens / nullif(sum(tokens) OVER (PARTITION BY b.measure), 0), 0) AS token_share
FROM bound b LEFT JOIN counted c USING (measure, place)
WHERE b.measure IN (SELECT measure FROM counted)
ORDER BY b.measure, b.place
