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
SELECT min(q.input_tokens) FILTER (NOT q.fine) > max(q.input_tokens) FILTER (q.fine)
  AND max(q.input_tokens) FILTER (q.fine) <= any_value(e.kv_pool_tokens)
    AND min(q.input_tokens) FILTER (NOT q.fine) >= $wall_share * any_value(e.kv_pool_tokens)
    AND count(*) FILTER (q.fine) >= $wall_answered AND count(*) FILTER (NOT q.fine) >= $wall_unanswered
      AND bool_or(q.fine AND q.after) AS parts,
  count(*) FILTER (q.fine) AS answered, count(*) FILTER (NOT q.fine) AS unanswered, max(q.input_tokens) FILTER (q.fine) AS longest,
    min(q.input_tokens) FILTER (NOT q.fine) AS shortest,
  any_value(e.kv_pool_tokens) AS pool_tokens, any_value(e.max_model_len) AS max_model_len,
    arg_min(q.source || ':' || q.line, q.input_tokens) FILTER (NOT q.fine) AS ref
FROM (
  SELECT source, line, input_tokens, status BETWEEN 200 AND 299 AS fine,
    line > min(CASE WHEN NOT fine THEN line END) OVER (PARTITION BY source) AS after
  FROM request WHERE input_tokens > 0 AND (fine OR status = 0 OR status >= 500)
) q, engine e WHERE e.kv_pool_tokens > 0
HAVING count(*) FILTER (q.fine) > 0 AND count(*) FILTER (NOT q.fine) > 0
