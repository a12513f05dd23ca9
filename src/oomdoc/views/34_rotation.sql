-- says: hit rates by the tokens that take turns in the cache, as somebody swept them; no row where nobody did
-- scope: bundle
-- tries: how many sizes were tried
-- kept_tokens: the largest set that was mostly found
-- kept_rate: its hit rate
-- lost_tokens: the smallest larger set that was hardly found
-- lost_rate: its hit rate
-- pool_tokens: tokens that the pool stores; NULL = nobody says
-- ref: where the set that was lost stands
WITH try AS (
  SELECT source, experiment, attempt, max(value) FILTER (quantity = 'asked_tokens') AS tokens, max(value) FILTER (quantity = 'hit_rate') AS rate, min(line) AS line
  FROM trial_figure WHERE quantity IN ('asked_tokens', 'hit_rate') GROUP BY ALL HAVING tokens > 0 AND rate BETWEEN 0 AND 1
), swept AS (
  SELECT source, experiment, count(*) AS tries, arg_max(tokens, tokens) FILTER (rate >= $set_kept) AS kept_tokens, arg_max(rate, tokens) FILTER (rate >= $set_kept) AS kept_rate FROM try GROUP BY ALL
)
SELECT s.tries, s.kept_tokens::BIGINT AS kept_tokens, s.kept_rate, min(t.tokens)::BIGINT AS lost_tokens, arg_min(t.rate, t.tokens) AS lost_rate,
       (SELECT max(value) FROM engine_figure WHERE name = 'kv_pool_tokens')::BIGINT AS pool_tokens, arg_min(t.source || ':' || t.line, t.tokens) AS ref
FROM swept s JOIN try t ON t.source = s.source AND t.experiment = s.experiment AND t.tokens > s.kept_tokens AND t.rate <= $set_lost
GROUP BY s.source, s.experiment, s.tries, s.kept_tokens, s.kept_rate ORDER BY s.tries DESC LIMIT 1
