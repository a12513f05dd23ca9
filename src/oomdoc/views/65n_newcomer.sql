-- says: a caller that joined those of a sheet of requests and finds next to nothing in the cache, while the others find what they found before it came: the rate of all together falls and nobody lost anything; no row where none came so
-- scope: bundle
-- tenant: the one that joined
-- since_t: its first request
-- share: its share of the prompt tokens since then
-- own_rate: share of its prompt tokens that was found
-- before_rate: of the others, before it came
-- after_rate: of the others, since then
-- requests: of the others since then
-- ref: its first request
WITH told AS (
  SELECT tenant, t, source, line, input_tokens, least(cached_tokens, input_tokens) AS cached_tokens
  FROM request WHERE tenant IS NOT NULL AND t IS NOT NULL AND input_tokens > 0 AND cached_tokens IS NOT NULL
), caller AS (
  SELECT source, tenant, min(t) AS first_t, count(*) AS n, sum(input_tokens) AS asked, sum(cached_tokens) / sum(input_tokens) AS rate,
    source || ':' || arg_min(line, (t, line)) AS ref
  FROM told GROUP BY source, tenant
), joined AS (
  SELECT c.source, c.tenant, c.first_t, c.asked, c.rate, c.ref,
    sum(r.input_tokens) FILTER (r.t >= c.first_t) AS asked_since,
    sum(r.cached_tokens) FILTER (r.t < c.first_t AND r.tenant <> c.tenant) / sum(r.input_tokens) FILTER (r.t < c.first_t AND r.tenant <> c.tenant) AS before_rate,
    sum(r.cached_tokens) FILTER (r.t >= c.first_t AND r.tenant <> c.tenant) / sum(r.input_tokens) FILTER (r.t >= c.first_t AND r.tenant <> c.tenant) AS after_rate,
    count(*) FILTER (r.t < c.first_t AND r.tenant <> c.tenant) AS before_n, count(*) FILTER (r.t >= c.first_t AND r.tenant <> c.tenant) AS after_n
  FROM caller c
  JOIN told r ON r.source = c.source
  WHERE c.n >= $lookups_least AND c.rate <= $newcomer_finds
  GROUP BY ALL
)
SELECT tenant, first_t AS since_t, asked / asked_since AS share, rate AS own_rate, before_rate, after_rate, after_n AS requests, ref
FROM joined
WHERE least(before_n, after_n) >= $lookups_least AND before_rate >= $others_find AND after_rate >= $others_keep * before_rate AND asked >= $newcomer_share * asked_since
ORDER BY asked DESC, ref LIMIT 1
