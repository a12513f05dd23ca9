-- says: what the prefix cache gave, from metrics and the log; no row where nobody says
-- scope: incident
-- queries: tokens (old versions: blocks) that were looked up
-- hits: of them found
-- hit_rate: hits / queries, else the last rate of the log
-- ref: where
-- evicted_idle_s: mean idle time of a block before eviction
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
-- turns: requests, in their order, of conversations whose prompts grow and whose cached tokens are told; NULL = none
-- cold: of them those that found less than a tenth of their prompt in the cache after one before had found half
-- cold_tokens: prompt tokens of the largest of these
-- cold_cached_tokens: what it found
-- cold_ttft_s: median time to their first token
-- warm_ttft_s: that of the others
-- cold_ref: where the first of them stands
-- onward: turns that repeat the prompt before and add to it
-- never: of them those that found next to nothing in the cache but the beginning that all prompts share
-- never_ref: where the first of them stands
-- spared_rate: share of the looked-up tokens that was found while nothing was evicted; NULL = no scrapes with and without evictions
-- evicting_rate: the same since blocks are evicted, or in a life in which they are
-- evicting: evictions then (sampled)
-- evicting_ref: where
-- missed_rate: of several servers that look up as much at both times, the share found at the time when it was least; NULL = no two such times
-- routed_rate: the share found at the time when it was most
-- routed: servers that found more then
-- routed_ref: where
-- found_by_routing: every server found little of what it was asked for, after it had been asked for as much before, and then most of as much, without a start between
-- lost_by_eviction: most was found while nothing was evicted, and far less since
WITH named AS (
  -- files whose names differ in a clock at their end (`metrics-1130.prom`) are scrapes of the same servers, in its order
  SELECT *, first_value(name || coalesce(labels, '')) OVER (PARTITION BY source ORDER BY line) AS head,
    regexp_extract(source, '^(.*[^0-9]|)((?:[01][0-9]|2[0-3])[-_:.h]?[0-5][0-9](?:[-_:.m]?[0-5][0-9])?)[^0-9]*$', ['series', 'clock']) AS file
  FROM metric
  WHERE (name LIKE '%prefix_cache%' OR name LIKE 'vllm:kv_block%') AND labels IS DISTINCT FROM 'delta'
), sheet AS (
  -- scrapes without a time stand in one file one below the other: each begins where the first series comes again
  SELECT name, labels, t, line, value, source, CASE WHEN t IS NULL THEN CASE WHEN file.clock <> '' THEN file.series ELSE source END END AS place,
    CASE WHEN t IS NULL THEN count(CASE WHEN name || coalesce(labels, '') = head THEN 1 END) OVER (PARTITION BY source ORDER BY line) END AS n
  FROM named
), scraped AS (
  -- a counter over its scrapes, in their order; in their own labels
  SELECT name, coalesce(labels, '') || coalesce(' ' || place, '') AS labels, coalesce(t, dense_rank() OVER (PARTITION BY place ORDER BY source, n)) AS t,
    value, source || ':' || line AS ref, lag(value) OVER w AS before,
         row_number() OVER (PARTITION BY name, labels, place ORDER BY t DESC, source DESC, line DESC) AS nth
  FROM sheet
  WINDOW w AS (PARTITION BY name, labels, place ORDER BY t, source, line)
), anew AS (
  SELECT labels, t, sum(coalesce(max((value < before)::INT), 0)) OVER (PARTITION BY labels ORDER BY t) AS life
  FROM scraped
  GROUP BY labels, t
), lived AS (
  -- a counter that fell began anew, and all of its engine with it: what two lives counted is not added up
  SELECT s.labels, a.life AS life, s.name, max(s.value) AS value, arg_max(s.ref, s.t) AS ref,
    max(max(CASE WHEN s.name LIKE '%prefix_cache_queries%' THEN s.value END)) OVER (PARTITION BY s.labels, a.life) AS queries
  FROM scraped s
  JOIN anew a ON a.labels = s.labels AND a.t = s.t
  GROUP BY s.labels, a.life, s.name
), span AS (
  -- what was looked up, found and evicted between two scrapes of one life, and until the first
  SELECT s.labels, s.t, sum(s.more) FILTER (s.name LIKE '%prefix_cache_queries%') AS queries,
    sum(s.more) FILTER (s.name LIKE '%prefix_cache_hits%') AS hits,
    sum(s.more) FILTER (s.name LIKE '%idle_before_evict_seconds_count') AS evictions, min(s.ref) AS ref
  FROM (SELECT *, value - CASE WHEN a.life > lag(a.life) OVER w THEN 0 ELSE coalesce(before, 0) END AS more
        FROM scraped JOIN anew a USING (labels, t) WINDOW w AS (PARTITION BY scraped.labels, name ORDER BY scraped.t)) s
  GROUP BY s.labels, s.t
), spared AS (
  -- the same engine while it evicted nothing and since: only eviction takes away what would be found
  SELECT sum(hits) FILTER (evictions = 0) / sum(queries) FILTER (evictions = 0) AS spared_rate,
    sum(hits) FILTER (evictions > 0) / sum(queries) FILTER (evictions > 0) AS evicting_rate,
    sum(evictions) FILTER (evictions > 0) AS evicting, min(ref) FILTER (evictions > 0) AS evicting_ref
  FROM span
  WHERE queries > 0 AND hits >= 0
  HAVING sum(queries) FILTER (evictions = 0) >= $lookups_least * $turn_tokens AND sum(queries) FILTER (evictions > 0) >= $lookups_least * $turn_tokens
), course_of AS (
  -- between two scrapes of one life, after the server had been asked for as much before: its cache was warm
  SELECT s.labels, s.t, s.queries, s.hits / s.queries AS rate, s.ref, a.life
  FROM (
    SELECT *, sum(queries) OVER (PARTITION BY labels ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS asked FROM span
  ) s
  JOIN anew a ON a.labels = s.labels AND a.t = s.t
  WHERE s.queries >= $lookups_least * $turn_tokens AND s.hits >= 0 AND s.asked >= s.queries
), moved AS (
  -- of one server the time when least was found and the later one when most was, of as much
  SELECT l.labels, l.rate AS low, m.rate AS high, m.ref, l.t, m.t AS till
  FROM course_of l
  JOIN course_of m ON m.labels = l.labels AND m.life = l.life AND m.t > l.t AND m.queries BETWEEN l.queries / $alike_queries AND $alike_queries * l.queries
  QUALIFY row_number() OVER (PARTITION BY l.labels ORDER BY m.rate - l.rate DESC, l.t, m.t) = 1
), routed AS (
  SELECT median(low) AS missed_rate, median(high) AS routed_rate, count(*) AS routed, min(ref) AS routed_ref,
    count(*) > 1 AND max(low) <= $set_lost AND min(high) >= $mostly_hit
      AND count(*) = (SELECT count(DISTINCT labels) FROM scraped WHERE name LIKE '%prefix_cache_queries%') AS found_by_routing
  FROM moved
  HAVING count(*) > 1
), latest AS (
  SELECT sum(value - before) FILTER (name LIKE '%prefix_cache_queries%') AS queries,
    sum(value - before) FILTER (name LIKE '%prefix_cache_hits%') AS hits,
         sum(before) FILTER (name LIKE '%prefix_cache_queries%') AS queries_before,
           sum(before) FILTER (name LIKE '%prefix_cache_hits%') AS hits_before,
         sum(value - before) FILTER (name LIKE '%idle_before_evict_seconds_sum') AS idle_s,
           sum(value - before) FILTER (name LIKE '%idle_before_evict_seconds_count') AS evictions,
         sum(value - before) FILTER (name LIKE '%reuse_gap_seconds_count') AS reuses,
         min(ref) FILTER (name LIKE '%prefix_cache_hits%') AS ref
  FROM scraped WHERE nth = 1 AND before IS NOT NULL HAVING min(value - before) >= 0
), counter AS (
  SELECT sum(value) FILTER (name IN ('vllm:prefix_cache_queries_total', 'vllm:gpu_prefix_cache_queries_total')) AS queries,
         sum(value) FILTER (name IN ('vllm:prefix_cache_hits_total', 'vllm:gpu_prefix_cache_hits_total')) AS hits,
         sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_sum') / nullif(
           sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_count'), 0
         ) AS evicted_idle_s,
         sum(value) FILTER (name = 'vllm:kv_block_reuse_gap_seconds_count') AS reuses,
         sum(value) FILTER (name = 'vllm:kv_block_idle_before_evict_seconds_count') AS evictions,
         min(ref) FILTER (name LIKE '%prefix_cache%') AS ref
  FROM (SELECT *, rank() OVER (PARTITION BY labels ORDER BY queries DESC NULLS LAST, life DESC) AS best FROM lived) WHERE best = 1
), turn AS (
  -- one conversation at a time; what every prompt finds is the beginning that all share
  SELECT source, line, input_tokens, cached_tokens, ttft_s, min(cached_tokens) OVER (PARTITION BY source) AS shared,
    lag(input_tokens) OVER w AS before,
    max(cached_tokens / input_tokens) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS hit_before
  FROM request
  WHERE input_tokens >= $turn_tokens AND cached_tokens IS NOT NULL
  WINDOW w AS (PARTITION BY source, coalesce(tenant, '') ORDER BY coalesce(t, elapsed_s), line)
), chat AS (
  SELECT count(*) AS turns, count(*) FILTER (cold) AS cold, arg_max(input_tokens, input_tokens) FILTER (cold) AS cold_tokens,
    arg_max(cached_tokens, input_tokens) FILTER (cold) AS cold_cached_tokens,
         median(ttft_s) FILTER (cold) AS cold_ttft_s, median(ttft_s) FILTER (NOT cold) AS warm_ttft_s,
           arg_min(source || ':' || line, line) FILTER (cold) AS cold_ref,
         count(*) FILTER (goes_on) AS onward, count(*) FILTER (goes_on AND anew) AS never,
         arg_min(source || ':' || line, line) FILTER (goes_on AND anew) AS never_ref
  FROM (SELECT *, coalesce(cached_tokens - shared < $turn_cold * (input_tokens - shared) AND cached_tokens < $turn_warm * input_tokens AND hit_before >= $turn_warm AND goes_on, false) AS cold FROM (
    SELECT *, input_tokens BETWEEN before AND $turn_growth * before AS goes_on,
           -- nothing, or no more than the beginning that all share
           cached_tokens < $turn_cold * input_tokens
             OR (cached_tokens < $turn_shared * input_tokens AND cached_tokens - shared < $turn_cold * (input_tokens - shared)) AS anew
           FROM turn))
  -- conversations, not a mix of requests
  HAVING avg(goes_on::INT) >= $turns_go_on AND count(*) >= $turns_least
), told AS (
  SELECT bool_or(topic = 'repeated-prefix') AS repeated, bool_or(topic = 'no-hits') AS no_hits,
    min(source || ':' || line) FILTER (topic IN ('repeated-prefix', 'no-hits')) AS ref
  FROM note
), said AS (
  SELECT arg_max(prefix_hit_rate, line) AS rate, arg_max(source || ':' || line, line) AS ref
  FROM seen.engine_stat
  WHERE prefix_hit_rate IS NOT NULL
), asked AS (
  SELECT 'tier' AS of, source, line, hit_tokens / tokens AS share, tokens AS weight, tokens AS size FROM seen.cache_lookup WHERE tokens > 0
  UNION ALL
  SELECT 'pool', source, line, prefix_hit_rate, 1, NULL
  FROM seen.engine_stat
  WHERE prefix_hit_rate IS NOT NULL AND (running > 0 OR prompt_tokens_per_s > 0)
), third AS (
  SELECT *, ntile(3) OVER (PARTITION BY of, source ORDER BY line) AS part, count(*) OVER (PARTITION BY of, source) AS n FROM asked
), course AS (
  -- of the pool and of each tier that one whose hits fell most
  SELECT of, source, any_value(n) AS n, sum(share * weight) FILTER (part = 1) / sum(weight) FILTER (part = 1) AS before,
    sum(share * weight) FILTER (part = 3) / sum(weight) FILTER (part = 3) AS after,
         avg(size) FILTER (part = 1) AS size_before, avg(size) FILTER (part = 3) AS size_after,
           source || ':' || min(line) FILTER (part = 3) AS ref
         FROM third
         GROUP BY of, source
         HAVING any_value(n) >= $lookups_least
  -- all that was counted until the scrape before the last, and what came since: requests of some tokens each
  UNION ALL
  SELECT 'counter', ref, ($lookups_least)::BIGINT, hits_before / queries_before, hits / queries, NULL, NULL, ref
  FROM latest
  WHERE queries >= $lookups_least * $turn_tokens AND queries_before > 0
), step AS (
  -- between two scrapes of one engine
  SELECT labels, t, min(ref) AS ref, sum(value - before) FILTER (name LIKE '%prefix_cache_queries%') AS queries,
    sum(value - before) FILTER (name LIKE '%prefix_cache_hits%') AS hits
  FROM scraped WHERE before IS NOT NULL GROUP BY labels, t HAVING queries > 0 AND hits >= 0
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
         CASE WHEN latest.evictions IS NULL THEN counter.reuses ELSE latest.reuses END AS reuses,
       coalesce(latest.evictions, counter.evictions) AS evictions,
       coalesce(repeated, false) AS repeated, coalesce(no_hits, false) AS no_hits, fell.n AS lookups, fell.before AS hit_before,
         fell.after AS hit_after, fell.ref AS lookup_ref,
       size_before, size_after, asked[1] AS asked_before, asked[2] AS asked_after, asked[3] AS found_before, asked[4] AS found_after,
         latest.queries AS recent_queries, latest.hits / nullif(latest.queries, 0) AS recent_rate, turns, cold,
         cold_tokens, cold_cached_tokens, cold_ttft_s, warm_ttft_s, cold_ref, onward, never, never_ref,
       spared_rate, evicting_rate, evicting, evicting_ref, missed_rate, routed_rate, routed, routed_ref,
       coalesce(found_by_routing, false) AS found_by_routing,
       -- twice next to nothing is next to nothing
       coalesce(
         spared_rate >= $mostly_hit AND 1 - evicting_rate >= $twice_missed * (1 - spared_rate) AND spared_rate - evicting_rate >= $tenth_lost,
         false
       ) AS lost_by_eviction
FROM counter, told, said, fell LEFT JOIN chat ON true LEFT JOIN latest ON true LEFT JOIN spared ON true LEFT JOIN routed ON true
WHERE coalesce(counter.queries, fell.n, said.rate, turns) IS NOT NULL OR repeated OR no_hits
