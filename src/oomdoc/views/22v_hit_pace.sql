-- says: time to first token between scrapes while prefixes are found, and later while they are not: what is found is not computed, and what is not waits for its computation; no row unless the hits fell and the time rose with them, while prompts were no longer than before
-- scope: incident
-- before_rate: share of the looked-up tokens that was found, 0..1
-- after_rate: the same later
-- before_s: mean time to first token then, seconds
-- after_s: the same later
-- queue_s: of the later time, what requests waited before anything was computed; NULL = not counted
-- requests: first tokens later
-- alike: as many came in a second as before; NULL = the scrapes have no clock
-- ref: where the later scrape stands
WITH step AS (
  SELECT labels, life, t, sum(more) FILTER (name LIKE '%prefix_cache_queries%') AS asked, sum(more) FILTER (name LIKE '%prefix_cache_hits%') AS found,
    sum(more) FILTER (name LIKE '%time_to_first_token_seconds_sum') AS waited, sum(more) FILTER (name LIKE '%time_to_first_token_seconds_count') AS n,
    sum(more) FILTER (name LIKE '%request_queue_time_seconds_sum') AS queued, min(ref) FILTER (name LIKE '%prefix_cache_hits%') AS ref, max(clock_s) AS clock_s
  FROM cache_scrape
  GROUP BY ALL
  HAVING asked > 0 AND n >= $pace_requests
), paced AS (
  SELECT *, n / nullif(clock_s - lag(clock_s) OVER (PARTITION BY labels, life ORDER BY t), 0) AS each_s FROM step
)
SELECT a.found / a.asked AS before_rate, b.found / b.asked AS after_rate, a.waited / a.n AS before_s, b.waited / b.n AS after_s,
  b.queued / b.n AS queue_s, b.n::BIGINT AS requests,
  b.each_s BETWEEN a.each_s / $pace_load AND a.each_s * $pace_load AS alike, b.ref
FROM paced a
JOIN paced b ON b.labels = a.labels AND b.life = a.life AND b.t > a.t
WHERE a.found / a.asked - b.found / b.asked >= $pace_hits_fell AND b.waited / b.n >= $pace_slower * a.waited / a.n
  -- longer prompts take longer by themselves, and fill the pool by their own length
  AND b.asked / b.n <= $pace_prompt * a.asked / a.n
  -- what waits in a queue waits for what is computed again only where no more come than before
  AND (coalesce(b.queued <= $pace_queued * b.waited, true) OR b.each_s BETWEEN a.each_s / $pace_load AND a.each_s * $pace_load)
ORDER BY a.found / a.asked - b.found / b.asked DESC, b.ref LIMIT 1
