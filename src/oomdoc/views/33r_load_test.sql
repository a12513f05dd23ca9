-- says: the run of a load whose first tokens took longest, against the one of the same prompts with fewer callers where they took least; no row where nobody tells of a load
-- scope: incident
-- callers: requests under way at a time in the slow run; NULL = not told
-- users: who come back with what they sent before, in the slow run; NULL = nobody does
-- prompt_tokens: tokens of a prompt
-- flight_tokens: tokens of those under way, half of each answer written
-- set_tokens: what those who come back sent before, in tokens
-- pool_tokens: tokens that the pool stores
-- ttft_s: time to the first token in the slow run, seconds
-- few: how many asked in the quick one; NULL = no other run
-- few_ttft_s: its time to the first token
-- first_turn_alike: a first turn takes as long with many as with few: it is not the load alone that slows the others
-- beyond: those under way do not fit the pool
-- roomy: those under way fit into it
-- set_beyond: what those who come back sent before does not fit the pool
-- ref: where the slow run stands
WITH pair AS (
  SELECT m.*, coalesce(f.callers, f.users) AS few, f.ttft_s AS few_ttft_s, f.set_tokens AS few_set_tokens
  FROM load_point m
  LEFT JOIN load_point f ON f.source = m.source AND f.sweep = m.sweep AND f.turn IS NOT DISTINCT FROM m.turn
    AND coalesce(f.users, f.callers) < coalesce(m.users, m.callers) AND f.ttft_s < m.ttft_s
    AND f.prompt_tokens BETWEEN m.prompt_tokens / $alike_prompts AND m.prompt_tokens * $alike_prompts
  WHERE m.ttft_s > 0
), slow AS (
  SELECT * FROM pair ORDER BY ttft_s / coalesce(few_ttft_s, ttft_s) DESC, ttft_s DESC, ref LIMIT 1
)
SELECT callers, users, prompt_tokens, flight_tokens, set_tokens, pool_tokens, ttft_s, few, few_ttft_s,
  coalesce(
    (
      SELECT max(p.ttft_s) <= $alike_first * min(p.ttft_s)
      FROM load_point p
      WHERE p.source = s.source AND p.sweep = s.sweep AND p.turn = 1 AND s.turn > 1 AND coalesce(p.users, p.callers) IN (s.few, coalesce(s.users, s.callers))
      HAVING count(*) > 1
    ), false
  ) AS first_turn_alike,
  coalesce(flight_tokens > pool_tokens, false) AS beyond,
  coalesce(flight_tokens <= $flight_fits * pool_tokens, false) AS roomy,
  coalesce(set_tokens > pool_tokens, false) AS set_beyond, ref
FROM slow s
