-- says: the counters of prefix caches at each scrape, in the order of the scrapes of one server
-- scope: incident
-- name: the counter
-- labels: whose: its labels, and where scrapes have no time, the file or the series of files they stand in
-- t: seconds since 1970; where scrapes have no time, their number
-- life: how often the counters of this server had begun anew until then
-- value: what it counted
-- before: at the scrape before, whatever began anew in between; NULL = the first
-- more: what it counted since then, or since it began anew
-- nth: 1 = the last scrape of this counter
-- ref: where
WITH named AS (
  -- files whose names differ in a clock at their end (`metrics-1130.prom`) are scrapes of the same servers, in its order
  SELECT *, first_value(name || coalesce(labels, '')) OVER (PARTITION BY source ORDER BY line) AS head,
    regexp_extract(source, '^(.*[^0-9]|)((?:[01][0-9]|2[0-3])[-_:.h]?[0-5][0-9](?:[-_:.m]?[0-5][0-9])?)[^0-9]*$', ['series', 'clock']) AS file
  FROM metric
  WHERE (name LIKE '%prefix_cache%' OR name LIKE 'vllm:kv_block%') AND labels IS DISTINCT FROM 'delta'
    -- what a tier outside the engine is asked for and finds is counted apart
    AND name NOT LIKE '%external_prefix_cache%'
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
)
SELECT s.name, s.labels, s.t, a.life::BIGINT AS life, s.value, s.before,
  s.value - CASE WHEN a.life > lag(a.life) OVER (PARTITION BY s.labels, s.name ORDER BY s.t) THEN 0 ELSE coalesce(s.before, 0) END AS more,
  s.nth, s.ref
FROM scraped s
JOIN anew a ON a.labels = s.labels AND a.t = s.t
