-- says: what prefix caches gave at two times that differ in one thing alone: before and since blocks are evicted, or under two routings; no row where neither is known
-- scope: incident
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
WITH span AS (
  -- what was looked up, found and evicted between two scrapes of one life, and until the first
  SELECT labels, t, life, sum(more) FILTER (name LIKE '%prefix_cache_queries%') AS queries,
    sum(more) FILTER (name LIKE '%prefix_cache_hits%') AS hits,
    sum(more) FILTER (name LIKE '%idle_before_evict_seconds_count') AS evictions, min(ref) AS ref
  FROM cache_scrape
  GROUP BY labels, t, life
), spared AS (
  -- the same engine while it evicted nothing and since: only eviction takes away what would be found
  SELECT sum(hits) FILTER (evictions = 0) / sum(queries) FILTER (evictions = 0) AS spared_rate,
    sum(hits) FILTER (evictions > 0) / sum(queries) FILTER (evictions > 0) AS evicting_rate,
    sum(evictions) AS evicting, min(ref) FILTER (evictions > 0) AS evicting_ref
  FROM span
  WHERE hits IS NOT NULL
  HAVING sum(queries) FILTER (evictions = 0) >= $lookups_least * $turn_tokens AND sum(queries) FILTER (evictions > 0) >= $lookups_least * $turn_tokens
), course_of AS (
  -- between two scrapes of one life, after the server had been asked for as much before: its cache was warm
  SELECT labels, t, life, queries, hits / queries AS rate, ref
  FROM (
    SELECT *, sum(queries) OVER (PARTITION BY labels ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS asked FROM span
  )
  WHERE queries >= $lookups_least * $turn_tokens AND hits IS NOT NULL AND asked >= queries
), moved AS (
  -- of one server the time when least was found and the later one when most was, of as much
  SELECT l.labels, l.rate AS low, m.rate AS high, m.ref, l.t, m.t AS till
  FROM course_of l
  JOIN course_of m ON m.labels = l.labels AND m.life = l.life AND m.t > l.t AND m.queries BETWEEN l.queries / $alike_queries AND $alike_queries * l.queries
  QUALIFY row_number() OVER (PARTITION BY l.labels ORDER BY m.rate - l.rate DESC, l.t, m.t) = 1
), routed AS (
  SELECT median(low) AS missed_rate, median(high) AS routed_rate, count(*) AS routed, min(ref) AS routed_ref,
    max(low) <= $set_lost AND min(high) >= $mostly_hit
      AND count(*) = (SELECT count(DISTINCT labels) FROM cache_scrape WHERE name LIKE '%prefix_cache_queries%') AS found_by_routing
  FROM moved
  HAVING count(*) > 1
)
SELECT spared_rate, evicting_rate, evicting, evicting_ref, missed_rate, routed_rate, routed, routed_ref,
  coalesce(found_by_routing, false) AS found_by_routing,
  -- twice next to nothing is next to nothing
  coalesce(
    spared_rate >= $mostly_hit AND 1 - evicting_rate >= $twice_missed * (1 - spared_rate) AND spared_rate - evicting_rate >= $tenth_lost,
    false
  ) AS lost_by_eviction
FROM spared
FULL JOIN routed ON true
