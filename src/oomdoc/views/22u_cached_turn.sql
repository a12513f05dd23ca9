-- says: conversations whose prompts grow from turn to turn, and what each turn found of the one before; no row where nobody tells what was cached
-- scope: incident
-- turns: requests, in their order, of conversations whose prompts grow and whose cached tokens are told
-- cold: of them those that found less than a tenth of their prompt in the cache after one before had found half
-- cold_tokens: prompt tokens of the largest of these
-- cold_cached_tokens: what it found
-- cold_ttft_s: median time to their first token
-- warm_ttft_s: that of the others
-- short_ttft_s: of the turns that add to the prompt before and found nothing of it, time to the first token of the shortest prompt
-- long_ttft_s: of the longest
-- cold_ref: where the first of them stands
-- onward: turns that repeat the prompt before and add to it
-- never: of them those that found next to nothing in the cache but the beginning that all prompts share
-- never_ref: where the first of them stands
-- never_warm: whether most of the turns that add to the prompt before found nothing of it; NULL = too few to say
-- between_tokens: of them, the most that all requests of the sheet computed and generated from the turn before until then
-- asked_tokens: tokens of all prompts of their sheet; of several sheets, of that which tells least
WITH nothing AS (
  -- between the last two scrapes of the only server nothing was found: so nothing of any request that was sent then
  SELECT any_value(m.t) AS since
  FROM cache_scrape h
  JOIN cache_scrape b ON b.labels = h.labels AND b.name = h.name AND b.nth = 2
  LEFT JOIN metric m ON m.source || ':' || m.line = b.ref
  WHERE h.nth = 1 AND h.name LIKE '%prefix_cache_hits%'
  HAVING count(*) = 1 AND max(h.value - h.before) = 0
), sheet AS (
  SELECT source, line, input_tokens, cached_tokens, ttft_s, coalesce(tenant, '') AS who, coalesce(t, elapsed_s) AS at_s,
    sum(input_tokens - cached_tokens + coalesce(output_tokens, 0)) OVER (
      PARTITION BY source ORDER BY coalesce(t, elapsed_s), line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS until_tokens,
    sum(input_tokens) OVER (PARTITION BY source) AS asked_tokens
  FROM (
    -- where the cache is switched off nothing is ever found
    SELECT r.* REPLACE (coalesce(r.cached_tokens, CASE WHEN r.t > n.since OR e.prefix_caching = false THEN 0 END) AS cached_tokens)
    FROM request r LEFT JOIN nothing n ON true, engine e
  )
  WHERE cached_tokens IS NOT NULL
), opened AS (
  SELECT *, row_number() OVER (PARTITION BY source, who ORDER BY at_s, line) = 1 AS opens FROM sheet WHERE input_tokens >= $turn_tokens
), turn AS (
  -- one conversation at a time; what the first prompt of each finds is the beginning that all share
  SELECT source, line, input_tokens, cached_tokens, ttft_s, asked_tokens,
    median(CASE WHEN opens THEN cached_tokens END) OVER (PARTITION BY source) AS shared, lag(input_tokens) OVER w AS before,
    until_tokens - coalesce(lag(until_tokens) OVER w, 0) AS between_tokens,
    max(cached_tokens / input_tokens) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS hit_before
  FROM opened
  WINDOW w AS (PARTITION BY source, who ORDER BY at_s, line)
)
SELECT count(*) AS turns, count(*) FILTER (cold) AS cold, arg_max(input_tokens, input_tokens) FILTER (cold) AS cold_tokens,
  arg_max(cached_tokens, input_tokens) FILTER (cold) AS cold_cached_tokens,
  median(ttft_s) FILTER (cold) AS cold_ttft_s, median(ttft_s) FILTER (NOT cold) AS warm_ttft_s,
  arg_min(ttft_s, input_tokens) FILTER (adds AND anew) AS short_ttft_s, arg_max(ttft_s, input_tokens) FILTER (adds AND anew) AS long_ttft_s,
  arg_min(source || ':' || line, line) FILTER (cold) AS cold_ref,
  count(*) FILTER (adds) AS onward, count(*) FILTER (adds AND anew) AS never,
  arg_min(source || ':' || line, line) FILTER (adds AND anew) AS never_ref,
  CASE WHEN count(*) FILTER (adds) >= $turns_least THEN count(*) FILTER (adds AND anew) >= $turn_share * count(*) FILTER (adds) END AS never_warm,
  max(between_tokens) FILTER (adds AND anew)::BIGINT AS between_tokens, min(asked_tokens) FILTER (adds AND anew)::BIGINT AS asked_tokens
FROM (
  SELECT *, coalesce(
      cached_tokens - shared < $turn_cold * (input_tokens - shared) AND cached_tokens < $turn_warm * input_tokens
        AND hit_before >= $turn_warm AND goes_on,
      false
    ) AS cold
  FROM (
    SELECT *, input_tokens BETWEEN before AND $turn_growth * before AS goes_on,
      -- the same prompt once more is told by its length
      input_tokens > before AND input_tokens <= $turn_growth * before AS adds,
      -- nothing, or no more than the beginning that all share
      cached_tokens < $turn_shared * input_tokens AND cached_tokens - shared < $turn_cold * (input_tokens - shared) AS anew
    FROM turn
  )
)
-- conversations, not a mix of requests
HAVING avg(goes_on::INT) >= $turns_go_on AND count(*) >= $turns_least
