-- says: those who send their own beginning again and again (tenants, documents), as a sheet of requests names them: at first all of them had room in the pool of a server together, in the end they have not, and first tokens are late by as much; no row where a sheet shows no such change
-- scope: incident
-- who_before: how many took turns at one server, in the first quarter of the requests
-- who: in the last quarter
-- tokens_before: their prompts together, one each
-- tokens: the same in the end
-- pool_tokens: what the pool stores
-- ttft_before_s: median time to the first token, in the first quarter
-- ttft_s: in the last
-- ref: the first request of the last quarter
WITH asked AS (
  SELECT source, line, tenant, coalesce(replica, '') AS server, input_tokens, ttft_s, coalesce(t, elapsed_s) AS moment,
    ntile(4) OVER (PARTITION BY source ORDER BY coalesce(t, elapsed_s), line) AS part
  FROM request
  WHERE tenant IS NOT NULL AND input_tokens > 0 AND ttft_s > 0 AND coalesce(t, elapsed_s) IS NOT NULL
), own AS (
  SELECT source, part, server, tenant, median(input_tokens) AS tokens, count(*) AS n FROM asked WHERE part IN (1, 4) GROUP BY ALL
), held AS (
  SELECT source, part, server, count(*) AS who, sum(tokens) AS tokens, sum(n) AS n FROM own GROUP BY ALL
), server AS (
  -- the one that most of the requests go through
  SELECT source, part, arg_max(who, n) AS who, arg_max(tokens, n) AS tokens, max(n) AS n FROM held GROUP BY ALL
), felt AS (
  SELECT source, part, median(ttft_s) AS ttft_s, median(input_tokens) AS input, count(*) / greatest(max(moment) - min(moment), 1) AS per_s,
    min_by(source || ':' || line, moment) AS ref
  FROM asked WHERE part IN (1, 4) GROUP BY ALL
)
SELECT a.who AS who_before, b.who, try_cast(a.tokens AS BIGINT) AS tokens_before, try_cast(b.tokens AS BIGINT) AS tokens, try_cast(e.kv_pool_tokens AS BIGINT) AS pool_tokens,
  x.ttft_s AS ttft_before_s, y.ttft_s, y.ref
FROM server a
JOIN server b ON b.source = a.source AND a.part = 1 AND b.part = 4
JOIN felt x ON x.source = a.source AND x.part = 1
JOIN felt y ON y.source = a.source AND y.part = 4, engine e
WHERE a.n >= $turns_told * a.who AND b.n >= $turns_told * b.who AND a.tokens <= e.kv_pool_tokens AND b.tokens >= $set_beyond * e.kv_pool_tokens
  AND y.ttft_s >= $later_by * x.ttft_s AND y.input <= $prompts_alike * x.input AND y.per_s <= $load_alike * x.per_s
  AND e.prefix_caching IS DISTINCT FROM false
ORDER BY y.ttft_s / x.ttft_s DESC
LIMIT 1
