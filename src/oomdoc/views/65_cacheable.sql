-- says: whether the pool can have kept and evicted prefixes at all: the longest prompt against a block, and the tokens since the start against the pool; no row where neither is known
-- scope: incident
-- block_tokens: tokens of a block, which is the least that is kept; NULL = not told
-- prompt_most: no prompt of the recorded requests had more tokens; NULL = not told
-- prompt_mean: tokens of a prompt on average, by the counters of the server with most of them; NULL = not told
-- prompts: as many prompts tell of it: of the recorded requests, else of the counters
-- prompt_ref: where
-- through_tokens: tokens that were read and generated since the start, by counters or by rates over its time; NULL = not told
-- pool_tokens: what the pool stores; NULL = not told
-- through_ref: where
-- never_kept: hardly a prompt fills a block, so next to nothing of them can be kept
-- never_evicted: what ran through the pool since the start had room in it
-- between_tokens: the most that was computed between two turns that repeat each other: by the sheet, where it tells of all, else by the busiest rate of a server; NULL = neither
-- never_between: conversations found nothing of their former prompts, though less was computed in between than the pool stores
-- never_again: a sheet names the text of each request, and no text is sent twice, or in the end none that had been sent before, while those that were are found: there is nothing that could be found
WITH listed AS (
  SELECT max(input_tokens) AS most, count(input_tokens) AS n, arg_max(source, input_tokens) || ':' || arg_max(line, input_tokens) AS ref
  FROM request
), meant AS (
  -- sum and count of one server each
  SELECT max_by(total / nullif(n, 0), n) AS mean, sum(n) AS n, min(ref) AS ref FROM (
    SELECT max(value) FILTER (name LIKE '%_sum') AS total, max(value) FILTER (name LIKE '%_count') AS n, min(source || ':' || line) AS ref
    FROM metric
    WHERE name IN ('vllm:request_prompt_tokens_sum', 'vllm:request_prompt_tokens_count') AND labels IS DISTINCT FROM 'delta'
    GROUP BY labels
    UNION ALL
    -- each prompt is looked up once: what was looked up by one server, for each request that it ended
    SELECT max(value) FILTER ((name LIKE '%prefix_cache_queries%' AND name NOT LIKE '%external%')),
      sum(value) FILTER (name LIKE 'vllm:request_success%'), min(source || ':' || line) FILTER ((name LIKE '%prefix_cache_queries%' AND name NOT LIKE '%external%'))
    FROM metric
    WHERE name IN ('vllm:prefix_cache_queries_total', 'vllm:prefix_cache_queries', 'vllm:request_success_total', 'vllm:request_success')
      AND labels IS DISTINCT FROM 'delta'
    GROUP BY source, t
    HAVING count(*) FILTER ((name LIKE '%prefix_cache_queries%' AND name NOT LIKE '%external%')) = 1 AND NOT EXISTS (FROM metric WHERE name = 'vllm:request_prompt_tokens_sum'))
), counted AS (
  SELECT sum(value) AS tokens, min(ref) AS ref FROM (
    SELECT name, max(value) AS value, min(source || ':' || line) AS ref FROM metric
    WHERE name IN ('vllm:prompt_tokens_total', 'vllm:generation_tokens_total') AND labels IS DISTINCT FROM 'delta' GROUP BY name, labels
  ) HAVING count(DISTINCT name) = 2
), up AS (
  SELECT s.source, s.start_id, s.last_line, min(m.t) AS t, min(m.line) AS line FROM engine_start s
  JOIN seen.milestone m ON m.source = s.source AND m.line BETWEEN s.first_line AND s.last_line
  WHERE m.name = 'serving' GROUP BY ALL
), block AS (
  SELECT max(value) AS tokens FROM seen.engine_figure WHERE name = 'block_size'
), flag AS (
  SELECT max(try_cast(value AS INTEGER)) AS tokens FROM seen.engine_flag WHERE flag = 'block_size'
), named AS (
  SELECT input_tokens, cached_tokens, row_number() OVER (PARTITION BY tenant ORDER BY coalesce(t, elapsed_s), source, line) > 1 AS again,
    ntile(3) OVER (ORDER BY coalesce(t, elapsed_s), source, line) = 3 AS late
  FROM request
  WHERE tenant IS NOT NULL AND cached_tokens IS NOT NULL AND input_tokens > 0
), rated AS (
  -- who tells no rate of prompts has read some all the same
  SELECT avg(prompt_tokens_per_s + coalesce(generation_tokens_per_s, 0)) * (max(e.t) - any_value(u.t)) AS tokens,
    arg_max(e.source || ':' || e.line, e.line) AS ref
  FROM up u JOIN seen.engine_stat e ON e.source = u.source AND e.line BETWEEN u.line AND u.last_line WHERE e.t >= u.t GROUP BY u.start_id
)
-- where not a token was ever found, prompts that do not fill a block on average are enough
SELECT * EXCLUDE (found, sheet_tokens, gap_tokens), coalesce(prompts >= $lookups_enough AND coalesce(
    prompt_most < block_tokens AND coalesce(prompt_mean < block_tokens, true),
    prompt_mean <= $part_of_a_block * block_tokens OR (prompt_mean < block_tokens AND found = 0)
  ), false) AS never_kept,
  coalesce(through_tokens <= $never_filled * pool_tokens, false) AS never_evicted,
  coalesce(sheet_tokens, gap_tokens) AS between_tokens,
  coalesce(sheet_tokens <= pool_tokens, gap_tokens <= $never_filled * pool_tokens, false) AS never_between,
  coalesce((SELECT count(DISTINCT tenant) = count(*) AND count(*) >= $named_enough AND max(cached_tokens) = 0 FROM request WHERE tenant IS NOT NULL), false)
  -- of the last third nearly all are sent for the first time; what comes again is found, so that the name is that of what prompts share
  OR coalesce((
    SELECT count(*) FILTER (late AND NOT again) >= $named_enough AND count(*) FILTER (late AND again) <= $once_in_a_while * count(*) FILTER (late)
      AND count(*) FILTER (again) >= $named_enough AND sum(cached_tokens) FILTER (again) >= $mostly_hit * sum(input_tokens) FILTER (again)
      AND sum(cached_tokens) FILTER (late) <= $hits_fell * sum(input_tokens) FILTER (late)
    FROM named
  ), false) AS never_again
FROM (SELECT (
    SELECT CASE WHEN t.never > 0 AND t.asked_tokens >= $sheet_tells_all * coalesce(p.recent_queries, p.queries) THEN t.between_tokens END
    FROM cached_turn t, prefix_cache p
  ) AS sheet_tokens, (
    -- as long as it takes somebody to come back, at the rate of the busiest server
    SELECT CASE WHEN t.never > 0 THEN try_cast(b.gap_s * s.rate AS BIGINT) END FROM cached_turn t, come_back b,
      (SELECT max(prompt_tokens_per_s + coalesce(generation_tokens_per_s, 0)) AS rate FROM seen.engine_stat HAVING count(prompt_tokens_per_s) >= $lookups_least) s
  ) AS gap_tokens,  try_cast(coalesce(block.tokens, flag.tokens) AS BIGINT) AS block_tokens, listed.most AS prompt_most, meant.mean AS prompt_mean,
  CASE WHEN listed.most IS NOT NULL THEN listed.n ELSE coalesce(meant.n, 0) END::BIGINT AS prompts, coalesce(listed.ref, meant.ref) AS prompt_ref,
  (SELECT max(value) FROM metric WHERE name LIKE '%prefix_cache_hits%' AND name NOT LIKE '%external%') AS found,
  try_cast(coalesce(counted.tokens, most.tokens) AS BIGINT) AS through_tokens, e.kv_pool_tokens::BIGINT AS pool_tokens, coalesce(counted.ref, most.ref) AS through_ref
FROM engine e, listed, meant, block, flag, (SELECT max(tokens) AS tokens, arg_max(ref, tokens) AS ref FROM rated) most LEFT JOIN counted ON true
WHERE coalesce(listed.most, meant.mean, counted.tokens, most.tokens) IS NOT NULL)
