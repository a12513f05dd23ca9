-- says: what the same requests find in the caches under two ways to spread them over servers, or to choose what is evicted, from a sheet that has both; no row where nobody compares
-- scope: incident
-- low_value: the way under which less is found
-- high_value: the other
-- low: share of the looked-up tokens that is found the one way, mean of the rows that lose, or of all where none does
-- high: the same rows the other way
-- rows: rows that differ in nothing but the way, and tell what was found both times
-- lost: of them those that find little the one way and most of it the other; 0 = too few
-- computed_tokens: the most that one of the rows had to compute the first way; NULL = not told
-- pool_tokens: what the caches behind a row store; NULL = not told
-- spread_alone: the share that would be found the first way if nothing were evicted, each server missing each prefix once; NULL = the number of servers is not told
-- by_eviction: what takes turns is more than the pool stores, or the two ways differ in what is evicted, or the first computed more than the pool stores and found less than the spread alone explains
-- ref: where the row stands that lost most
WITH cell AS (
  SELECT source, experiment, attempt, flag, lower(trim(value)) AS value, min(line) AS line,
    regexp_matches(flag, '^(?:cache_policy|@(?:\w+_)?(?:strategy|policy|method|balancer|balancing|router|routing|distribution|dispatch|algorithm|picker|affinity|assignment))$')
      AND NOT regexp_matches(value, '^[\d.,\s]*$') AS way
  FROM trial
  WHERE attempt IS NOT NULL
  GROUP BY ALL
), way AS (
  SELECT source, experiment, attempt, min(line) AS line, arg_min(value, flag) AS way FROM cell WHERE way GROUP BY ALL
), shared AS (
  -- a condition under which both ways were tried; what stands in one row only is no condition
  SELECT c.source, c.experiment, c.flag, c.value
  FROM cell c
  JOIN way w USING (source, experiment, attempt)
  WHERE NOT c.way
  GROUP BY ALL
  HAVING count(DISTINCT w.way) > 1
), beside AS (
  SELECT c.source, c.experiment, c.attempt, list_sort(list(c.flag || '=' || c.value)) AS others
  FROM cell c
  JOIN shared s USING (source, experiment, flag, value)
  GROUP BY ALL
), figured AS (
  SELECT source, experiment, attempt, max(value) FILTER (quantity = 'asked_tokens') AS asked, max(value) FILTER (quantity = 'hit_tokens') AS hits,
    max(value) FILTER (quantity = 'hit_rate') AS rate, bool_or(quantity = 'asked_tokens' AND regexp_matches(name, 'block|page')) AS blocks
  FROM trial_figure
  GROUP BY ALL
), tried AS (
  SELECT w.source, w.experiment, w.way, w.line, coalesce(b.others, []) AS others, f.asked, f.blocks,
    -- who names what was found and not how much was asked for is asked the same both ways
    coalesce(f.rate, f.hits / nullif(f.asked, 0), f.hits / nullif(max(f.hits) OVER (PARTITION BY w.source, w.experiment, coalesce(b.others, [])), 0)) AS share
  FROM way w
  JOIN figured f USING (source, experiment, attempt)
  LEFT JOIN beside b USING (source, experiment, attempt)
), pool AS (
  SELECT e.kv_pool_tokens * coalesce(e.data_parallel_size, 1) AS tokens,
    coalesce((SELECT max(value) FROM seen.engine_figure WHERE name = 'block_size'), 16) AS block,
    EXISTS (FROM come_back WHERE too_many) OR EXISTS (FROM load_point WHERE users > 1 AND set_tokens > pool_tokens) AS turns_beyond
  FROM engine e
), pair AS (
  SELECT l.source, l.experiment, l.way AS low_value, h.way AS high_value, l.share AS low, h.share AS high, l.line,
    (1 - l.share) * l.asked * CASE WHEN l.blocks THEN p.block ELSE 1 END AS computed, p.tokens AS pool_tokens, p.turns_beyond,
    h.share >= $set_kept AND l.share <= CASE WHEN p.turns_beyond THEN $part_lost ELSE $set_lost END AS lost
  FROM tried l
  JOIN tried h ON h.source = l.source AND h.experiment = l.experiment AND h.way <> l.way AND h.others = l.others, pool p
  WHERE l.share BETWEEN 0 AND 1 AND h.share BETWEEN 0 AND 1 AND l.share <= h.share
    AND coalesce(l.asked BETWEEN h.asked / $alike_queries AND $alike_queries * h.asked, true)
), compared AS (
  SELECT source, experiment, low_value, high_value, coalesce(avg(low) FILTER (lost), avg(low)) AS low,
    coalesce(avg(high) FILTER (lost), avg(high)) AS high, count(*) AS rows,
    CASE WHEN count(*) FILTER (lost) >= $lost_rows * count(*) THEN count(*) FILTER (lost) ELSE 0 END AS lost,
    max(computed)::BIGINT AS computed_tokens, any_value(pool_tokens)::BIGINT AS pool_tokens,
    any_value(turns_beyond) AS turns_beyond, arg_min(source || ':' || line, low) AS ref
  FROM pair
  GROUP BY source, experiment, low_value, high_value
), servers AS (
  SELECT source, experiment, count(DISTINCT value) AS n
  FROM cell
  WHERE regexp_matches(flag, '^@(?:\w+_)?(?:pod|server|replica|backend|worker|node|instance|engine|rank)(?:_(?:id|name))?$')
  GROUP BY ALL
), spread AS (
  -- a prefix that comes k times is missed once where one server has it, and once on each of n that it meets
  SELECT c.*, 1 / greatest(1 - c.high, 0.001) AS k, coalesce(s.n, e.data_parallel_size) AS n
  FROM compared c
  LEFT JOIN servers s USING (source, experiment), engine e
)
SELECT low_value, high_value, low, high, rows, lost, computed_tokens, pool_tokens, CASE WHEN n > 1 THEN round(1 - n * (1 - pow(1 - 1 / n, k)) / k, 3) END AS spread_alone,
  turns_beyond OR regexp_matches(low_value, '^(?:lru|lfu|arc|fifo|slru|2q|s3-?fifo|sieve|mru)\b')
    OR coalesce(computed_tokens > pool_tokens, false) AND coalesce(low < spread_alone, true) AS by_eviction, ref
FROM spread
ORDER BY lost > 0 AND by_eviction DESC, high - low DESC, ref
LIMIT 1
