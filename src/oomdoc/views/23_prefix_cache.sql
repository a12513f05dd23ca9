-- says: what the prefix cache gave, from metrics and the log; no row where nobody says
-- scope: incident
-- queries: tokens (old versions: blocks) that were looked up
-- hits: of them found
-- hit_rate: hits / queries, else the last rate of the log
-- ref: where
-- evicted_idle_s: mean idle time of a block before eviction
-- reuse_gap_s: mean time between two uses of a block that was used again
-- reuses: how often a cached block was used again (sampled)
-- evictions: blocks evicted (sampled)
-- repeated: a text states that the same prefixes come again
-- no_hits: a text states that they were not hit
-- lookups: requests that a tier outside the pool was asked for, or samples of the log's hit rate
-- hit_before: share of tokens found in the first third of them
-- hit_after: share of tokens found in the last third
-- lookup_ref: where the last third begins
-- size_before: tokens of a lookup in the first third; NULL = only rates are told
-- size_after: in the last third
-- asked_before: tokens looked up between two scrapes, in the first third of a series; NULL = no series
-- asked_after: in the last third
-- found_before: of them found, in the first third
-- found_after: in the last third
-- recent_queries: tokens looked up between the last two scrapes; NULL = one scrape, or the counters began anew
-- recent_rate: share of them that was found
WITH lived AS (
  -- a counter that fell began anew, and all of its engine with it: what two lives counted is not added up
  SELECT labels, life, name, max(value) AS value, arg_max(ref, t) AS ref,
    max(max(CASE WHEN name LIKE '%prefix_cache_queries%' THEN value END)) OVER (PARTITION BY labels, life) AS queries
  FROM cache_scrape
  GROUP BY labels, life, name
), latest AS (
  SELECT sum(value - before) FILTER (name LIKE '%prefix_cache_queries%') AS queries,
    sum(value - before) FILTER (name LIKE '%prefix_cache_hits%') AS hits,
         sum(before) FILTER (name LIKE '%prefix_cache_queries%') AS queries_before,
           sum(before) FILTER (name LIKE '%prefix_cache_hits%') AS hits_before,
         sum(value - before) FILTER (name LIKE '%idle_before_evict_seconds_sum') AS idle_s,
           sum(value - before) FILTER (name LIKE '%idle_before_evict_seconds_count') AS evictions,
         sum(value - before) FILTER (name LIKE '%reuse_gap_seconds_count') AS reuses,
         sum(value - before) FILTER (name LIKE '%reuse_gap_seconds_sum') AS gap_s,
         min(ref) FILTER (name LIKE '%prefix_cache_hits%') AS ref
  FROM cache_scrape WHERE nth = 1 HAVING min(value - before) >= 0
), counter AS (
  SELECT sum(value) FILTER (name IN ('vllm:prefix_cache_queries_total', 'vllm:gpu_prefix_cache_queries_total')) AS queries,
         sum(value) FILTER (name IN ('vllm:prefix_cache_hits_total', 'vllm:gpu_prefix_cache_hits_total')) AS hits,
         sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_sum') / nullif(
           sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_count'), 0
         ) AS evicted_idle_s,
         sum(value) FILTER (name = 'vllm:kv_block_reuse_gap_seconds_count') AS reuses,
         sum(value) FILTER (name = 'vllm:kv_block_reuse_gap_seconds_sum') AS gap_s,
         sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_count') AS evictions,
         min(ref) FILTER (name LIKE '%prefix_cache%') AS ref
  FROM (SELECT *, rank() OVER (PARTITION BY labels ORDER BY queries DESC NULLS LAST, life DESC) AS best FROM lived) WHERE best = 1
), told AS (
  SELECT bool_or(topic = 'repeated-prefix') AS repeated, bool_or(topic = 'no-hits') AS no_hits,
    min(source || ':' || line) FILTER (topic IN ('repeated-prefix', 'no-hits')) AS ref
  FROM note
  WHERE topic IN ('repeated-prefix', 'no-hits')
), said AS (
  SELECT arg_max(prefix_hit_rate, line) AS rate, arg_max(source, line) || ':' || max(line) AS ref
  FROM seen.engine_stat
  WHERE prefix_hit_rate IS NOT NULL
), third AS (
  -- each by itself: to put a million lines in order costs a third where nothing else is carried along
  SELECT 'tier' AS of, source, line, hit_tokens / tokens AS share, tokens AS weight, tokens AS size,
    ntile(3) OVER (PARTITION BY source ORDER BY line) AS part
  FROM seen.cache_lookup WHERE tokens > 0
  UNION ALL
  SELECT 'pool', source, line, prefix_hit_rate, 1, NULL, ntile(3) OVER (PARTITION BY source ORDER BY line)
  FROM seen.engine_stat
  WHERE prefix_hit_rate IS NOT NULL AND (running > 0 OR prompt_tokens_per_s > 0)
), course AS (
  -- of the pool and of each tier that one whose hits fell most
  SELECT of, source, count(*) AS n, sum(share * weight) FILTER (part = 1) / sum(weight) FILTER (part = 1) AS before,
    sum(share * weight) FILTER (part = 3) / sum(weight) FILTER (part = 3) AS after,
         avg(size) FILTER (part = 1) AS size_before, avg(size) FILTER (part = 3) AS size_after,
           source || ':' || min(line) FILTER (part = 3) AS ref
         FROM third
         GROUP BY of, source
         HAVING count(*) >= $lookups_least
  -- all that was counted until the scrape before the last, and what came since: requests of some tokens each
  UNION ALL
  SELECT 'counter', ref, ($lookups_least)::BIGINT, hits_before / queries_before, hits / queries, NULL, NULL, ref
  FROM latest
  WHERE queries >= $lookups_least * $turn_tokens AND queries_before > 0
  -- what an earlier life of the server had found, as another day's scrape tells, and what is found now
  UNION ALL
  SELECT 'life', l.ref, ($lookups_least)::BIGINT, max(e.hits / e.queries), l.hits / l.queries, NULL, NULL, l.ref
  FROM latest l JOIN (
    SELECT max(value) FILTER (name LIKE '%prefix_cache_hits%') AS hits, any_value(queries) AS queries FROM lived
    GROUP BY labels, life HAVING life < (SELECT max(life) FROM lived o WHERE o.labels = lived.labels)
  ) e ON e.queries >= $lookups_least * $turn_tokens AND l.queries >= $lookups_least * $turn_tokens
  GROUP BY ALL
), step AS (
  -- between two scrapes of one engine
  SELECT labels, t, min(ref) AS ref, sum(more) FILTER (name LIKE '%prefix_cache_queries%') AS queries,
    sum(more) FILTER (name LIKE '%prefix_cache_hits%') AS hits
  FROM cache_scrape
  WHERE before IS NOT NULL
  GROUP BY labels, t
  HAVING queries > 0 AND hits IS NOT NULL
), slid AS (
  SELECT labels, count(*) AS n, sum(hits) FILTER (part = 1) / sum(queries) FILTER (part = 1) AS before,
    sum(hits) FILTER (part = 3) / sum(queries) FILTER (part = 3) AS after, min(ref) FILTER (part = 3) AS ref,
    avg(queries) FILTER (part = 1) AS asked_before, avg(queries) FILTER (part = 3) AS asked_after, avg(hits) FILTER (part = 1) AS found_before,
    avg(hits) FILTER (part = 3) AS found_after
  FROM (SELECT *, ntile(3) OVER (PARTITION BY labels ORDER BY t) AS part FROM step)
  GROUP BY labels
  HAVING count(*) >= $lookups_least AND sum(queries) >= $lookups_least * $turn_tokens
), fell AS (
  SELECT max(n) AS n, arg_max(before, before - after) AS before, arg_max(after, before - after) AS after,
    arg_max(size_before, before - after) AS size_before, arg_max(size_after, before - after) AS size_after,
         arg_max(ref, before - after) AS ref, max_by(asked, before - after) AS asked
         FROM (
           SELECT before, after, n, size_before, size_after, ref, NULL AS asked FROM course
           UNION ALL
           SELECT before, after, n, NULL, NULL, ref, [asked_before, asked_after, found_before, found_after] FROM slid
         )
)
SELECT counter.queries, counter.hits, coalesce(counter.hits / nullif(counter.queries, 0), said.rate) AS hit_rate,
  coalesce(counter.ref, told.ref, said.ref) AS ref,
  -- rates of the last interval, where it is known: an average over a life hides what goes on now
  coalesce(latest.idle_s / nullif(latest.evictions, 0), counter.evicted_idle_s) AS evicted_idle_s,
  CASE WHEN latest.evictions IS NULL THEN counter.gap_s / nullif(counter.reuses, 0) ELSE latest.gap_s / nullif(latest.reuses, 0) END AS reuse_gap_s,
  CASE WHEN latest.evictions IS NULL THEN counter.reuses ELSE latest.reuses END AS reuses,
  coalesce(latest.evictions, counter.evictions) AS evictions,
  coalesce(repeated, false) AS repeated, coalesce(no_hits, false) AS no_hits, fell.n AS lookups, fell.before AS hit_before,
  fell.after AS hit_after, fell.ref AS lookup_ref, size_before, size_after, asked[1] AS asked_before, asked[2] AS asked_after,
  asked[3] AS found_before, asked[4] AS found_after, latest.queries AS recent_queries,
  latest.hits / nullif(latest.queries, 0) AS recent_rate
FROM counter, told, said, fell LEFT JOIN latest ON true
WHERE coalesce(counter.queries, fell.n, said.rate) IS NOT NULL OR repeated OR no_hits
