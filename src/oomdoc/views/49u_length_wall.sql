-- says: requests that are told one by one with their prompt and their end: whether the pool alone parts those that were answered from those that never were; no row where the pool, or one of the two, is not told
-- scope: incident
-- parts: every request that was answered fits into the pool, every other one is longer than it, or than what it leaves for an answer; there are several of each, and answers came after the first that got none: the server lives
-- answered: how many
-- unanswered: how many: refused, timed out, failed
-- longest: longest prompt that was answered
-- shortest: shortest that was not
-- pool_tokens: tokens that the pool stores
-- max_model_len: length that a request may have, as the server states it
-- ref: where the shortest that was not answered stands
WITH log AS (  -- a log at a time: which line comes first is known within one only
  SELECT source, count(CASE WHEN fine THEN 1 END) AS answered, count(CASE WHEN NOT fine THEN 1 END) AS unanswered,
    max(CASE WHEN fine THEN input_tokens END) AS longest, min(CASE WHEN NOT fine THEN input_tokens END) AS shortest,
    max(CASE WHEN fine THEN line END) > min(CASE WHEN NOT fine THEN line END) AS after
  FROM (
    SELECT source, line, input_tokens, status BETWEEN 200 AND 299 AS fine
    FROM request WHERE input_tokens > 0 AND (fine OR status = 0 OR status >= 500)
  )
  GROUP BY source
),
total AS (
  SELECT sum(answered)::BIGINT AS answered, sum(unanswered)::BIGINT AS unanswered, max(longest) AS longest,
    min(shortest) AS shortest, bool_or(after) AS after
  FROM log
)
SELECT t.shortest > t.longest AND t.longest <= e.kv_pool_tokens AND t.shortest >= $wall_share * e.kv_pool_tokens
    AND t.answered >= $wall_answered AND t.unanswered >= $wall_unanswered AND t.after AS parts,
  t.answered, t.unanswered, t.longest, t.shortest, e.kv_pool_tokens AS pool_tokens, e.max_model_len,
  (
    SELECT min_by(source || ':' || line, (source, line))
    FROM request WHERE input_tokens = t.shortest AND (status = 0 OR status >= 500)
  ) AS ref
FROM total t, engine e WHERE e.kv_pool_tokens > 0 AND t.answered > 0 AND t.unanswered > 0
