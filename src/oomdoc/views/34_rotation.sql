-- says: hit rates by how much takes turns in the cache, tokens or tenants, as somebody swept it; no row where nobody did
-- scope: incident
-- tries: how many sizes were tried
-- unit: what was counted: tokens, or those who take turns (tenants, sessions, documents)
-- kept: the largest set that was mostly found
-- kept_rate: its hit rate
-- lost: the smallest larger set that was hardly found
-- lost_rate: its hit rate
-- kept_tokens: the same in tokens; NULL = another unit
-- lost_tokens: the same in tokens; NULL = another unit
-- pool_tokens: tokens that the pool stores; NULL = nobody says
-- larger_tokens: a larger pool, with which as many as were lost were found in another try; NULL = nobody tried
-- ref: where the set that was lost stands
WITH turned AS (
  -- `12`, `12 (kv fp8)`: a number, and what else was different then
  SELECT source, experiment, attempt, any_value(substr(flag, 2)) AS unit,
    max(try_cast(regexp_extract(value, '^\s*(\d[\d ,]*)', 1).replace(',', '').replace(' ', '') AS DOUBLE)) AS n,
    any_value(trim(regexp_replace(value, '^[\d ,]+', ''))) AS beside
  FROM trial
  WHERE regexp_matches(
    flag,
    '^@(?:n_?|num_?|number_of_)?(?:distinct_|different_|unique_)?(?:tenants?|sessions?|conversations?|chats?|agents?|users?|clients?|documents?|docs|prefix(?:es)?|prompts|books?|customers?|repos(?:itories)?)$'
  )
  GROUP BY ALL
), try AS (
  -- rows of two callers are two kinds of prompts, and no two sizes of one set
  SELECT f.source, f.experiment, coalesce(any_value(c.caller), '') AS caller,
    CASE WHEN max(f.value) FILTER (quantity = 'asked_tokens') IS NOT NULL THEN 'tokens' ELSE any_value(t.unit) END AS unit, coalesce(any_value(t.beside), '') AS beside,
         coalesce(max(f.value) FILTER (quantity = 'asked_tokens'), any_value(t.n)) AS size,
           max(f.value) FILTER (quantity = 'hit_rate') AS rate, max(f.value) FILTER (quantity = 'kv_tokens') AS pool, min(f.line) AS line
  FROM trial_figure f LEFT JOIN turned t ON t.source = f.source AND t.experiment = f.experiment AND t.attempt = f.attempt
    LEFT JOIN caller c ON c.source = f.source AND c.experiment = f.experiment AND c.attempt = f.attempt
  WHERE quantity IN ('asked_tokens', 'hit_rate', 'kv_tokens')
  GROUP BY f.source, f.experiment, f.attempt
  HAVING size > 0 AND rate BETWEEN 0 AND 1
), swept AS (
  SELECT source, experiment, caller, unit, beside, pool, count(*) AS tries, arg_max(size, size) FILTER (rate >= $set_kept) AS kept,
    arg_max(rate, size) FILTER (rate >= $set_kept) AS kept_rate
  FROM try
  GROUP BY ALL
)
SELECT s.tries, s.unit, s.kept::BIGINT AS kept, s.kept_rate, min(t.size)::BIGINT AS lost, arg_min(t.rate, t.size) AS lost_rate,
  CASE WHEN s.unit = 'tokens' THEN s.kept::BIGINT END AS kept_tokens,
  CASE WHEN s.unit = 'tokens' THEN min(t.size)::BIGINT END AS lost_tokens,
       coalesce(s.pool, (SELECT kv_pool_tokens FROM engine))::BIGINT AS pool_tokens,
       (
         SELECT min(c.pool)::BIGINT
         FROM try c
         WHERE c.source = s.source AND c.experiment = s.experiment AND c.pool > s.pool AND c.rate >= $set_kept AND c.size >= min(t.size)
       ) AS larger_tokens, arg_min(t.source || ':' || t.line, t.size) AS ref
FROM swept s
JOIN try t ON t.source = s.source AND t.experiment = s.experiment AND t.caller = s.caller AND t.unit = s.unit AND t.beside = s.beside
  AND t.pool IS NOT DISTINCT FROM s.pool AND t.size > s.kept AND t.rate <= $set_lost
GROUP BY s.source, s.experiment, s.caller, s.unit, s.beside, s.pool, s.tries, s.kept, s.kept_rate ORDER BY s.tries DESC LIMIT 1
