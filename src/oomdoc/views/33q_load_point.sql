-- says: what a load asked of the pool, one row per run of a load generator or per row of a sheet that names who asked, how long their prompts are and how long the first token took
-- scope: incident
-- source: where it is told
-- sweep: runs of one number and source are of one sweep
-- turn: of which turn of a conversation the row tells; NULL = of all
-- callers: requests under way at a time, no more than the server runs; NULL = not told
-- users: who come back with what they sent before; NULL = nobody does, or not told
-- prompt_tokens: tokens of a prompt
-- own_tokens: of them not shared by all
-- flight_tokens: callers, each with its prompt and half of its answer
-- set_tokens: users, each with its own tokens
-- pool_tokens: tokens that all replicas of the engine store; where no engine tells, what the row says
-- ttft_s: time to the first token, seconds
-- ref: where
WITH sheet AS (
  SELECT source, experiment, attempt, min(line) AS line,
    max(n) FILTER (regexp_matches(flag, '^@(?:n_?|num_?|max_?)?(?:concurren\w*|conc|clients?|parallel\w*|vus?|streams?|in_?flight|inflight)$')) AS callers,
    max(n) FILTER (
      regexp_matches(flag, '^@(?:n_?|num_?)?(?:active_)?(?:users?|agents?|sessions?|conversations?|chats?|workers?|trajectories)$')
    ) AS users,
    max(n) FILTER (flag IN ('@turn', '@round', '@turns', '@rounds')) AS turn
  FROM (SELECT *, try_cast(replace(value, ',', '') AS DOUBLE) AS n FROM trial WHERE attempt IS NOT NULL)
  GROUP BY ALL
), figured AS (
  SELECT source, experiment, attempt, max(value) FILTER (quantity = 'asked_tokens') AS prompt_tokens,
    -- a median stands below its percentiles
    min(value) FILTER (quantity = 'ttft_s' AND value > 0) AS ttft_s, max(value) FILTER (quantity = 'kv_tokens') AS kv_tokens
  FROM trial_figure
  GROUP BY ALL
), told AS (
  SELECT source, experiment AS sweep, turn, callers, users, prompt_tokens, prompt_tokens AS own_tokens, 0 AS output_tokens, ttft_s, kv_tokens,
    source || ':' || line AS ref
  FROM sheet
  JOIN figured USING (source, experiment, attempt)
  WHERE callers IS NOT NULL OR users IS NOT NULL
  UNION ALL
  -- with no bound and no rate all are sent at once
  SELECT source, -1, NULL, coalesce(clients, CASE WHEN users IS NULL AND rate_per_s IS NULL THEN requests END), users, prompt_tokens,
    prompt_tokens - coalesce(shared_tokens, 0), coalesce(output_tokens, 0), ttft_s, NULL, source || ':' || line
  FROM load_run
)
SELECT t.source, t.sweep, t.turn::BIGINT AS turn, CASE WHEN t.callers IS NOT NULL THEN least(t.callers, e.max_num_seqs) END::BIGINT AS callers, t.users::BIGINT AS users,
  t.prompt_tokens::BIGINT AS prompt_tokens, t.own_tokens::BIGINT AS own_tokens,
  (CASE WHEN t.callers IS NOT NULL THEN least(t.callers, e.max_num_seqs) END * (t.prompt_tokens + t.output_tokens / 2))::BIGINT AS flight_tokens,
  (t.users * t.own_tokens)::BIGINT AS set_tokens, coalesce(e.kv_pool_tokens * coalesce(e.data_parallel_size, 1), t.kv_tokens)::BIGINT AS pool_tokens, t.ttft_s, t.ref
FROM told t, engine e
WHERE t.prompt_tokens > 0
  -- a row that names another pool tells of another server
  AND coalesce(abs(t.kv_tokens - e.kv_pool_tokens) <= $pool_as_told * e.kv_pool_tokens
    OR abs(t.kv_tokens - e.kv_pool_tokens * e.data_parallel_size) <= $pool_as_told * e.kv_pool_tokens * e.data_parallel_size, true)
