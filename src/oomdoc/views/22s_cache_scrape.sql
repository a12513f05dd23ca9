-- says: the counters of prefix caches, and of the time to a first token, at each scrape, in the order of the scrapes of one server
-- scope: incident
-- name: the counter
-- labels: whose: its labels, and where scrapes have no time, the file or the series of files they stand in
-- t: seconds since 1970; where scrapes have no time, their number
-- clock_s: seconds by the same clock in which t is told, or by the clock in the name of its file; NULL = neither is there
-- life: how often the counters of this server had begun anew until then
-- value: what it counted
-- before: at the scrape before, whatever began anew in between; NULL = the first
-- more: what it counted since then, or since it began anew
-- nth: 1 = the last scrape of this counter
-- ref: where
WITH told AS (
  SELECT source, regexp_extract(source, '^(.*[^0-9]|)((?:[01][0-9]|2[0-3])[-_:.h]?[0-5][0-9](?:[-_:.m]?[0-5][0-9])?)[^0-9]*$', ['series', 'clock']) AS name
  FROM (SELECT DISTINCT source FROM metric)
), filed AS (
  -- a number right before the clock counts the scrapes, unless several of them are of one moment: then it counts the servers
  SELECT source, name.series AS series, name.clock AS clock, regexp_replace(name.series, '([._-])[0-9]{1,3}([._-])$', '\1\2') AS bare FROM told
), kept AS (
  SELECT f.source, f.clock, CASE WHEN a.most = 1 THEN f.bare ELSE f.series END AS series
  FROM filed f
  JOIN (SELECT bare, max(n) AS most FROM (SELECT bare, clock, count(*) AS n FROM filed GROUP BY ALL) GROUP BY bare) a USING (bare)
), named AS (
  -- files whose names differ in a clock at their end (`metrics-1130.prom`) are scrapes of the same servers, in its order
  SELECT m.*, first_value(name || coalesce(labels, '')) OVER (PARTITION BY source ORDER BY line) AS head, k.series, k.clock
  FROM metric m JOIN kept k USING (source)
  WHERE (name LIKE '%prefix_cache%' OR name LIKE 'vllm:kv_block%' OR regexp_matches(name, ':(?:time_to_first_token|request_queue_time)_seconds_(?:sum|count)$')) AND labels IS DISTINCT FROM 'delta'
    -- what a tier outside the engine is asked for and finds is counted apart
    AND name NOT LIKE '%external_prefix_cache%'
), sheet AS (
  -- scrapes without a time stand in one file one below the other: each begins where the first series comes again
  SELECT name, labels, t, line, value, source, CASE WHEN t IS NULL THEN CASE WHEN clock <> '' THEN series ELSE source END END AS place,
    coalesce(t, CASE WHEN clock <> '' THEN list_dot_product([3600.0, 60.0, 1.0], list_resize(list_transform(regexp_extract_all(clock, '[0-9][0-9]'), lambda x: x::DOUBLE), 3, 0.0)) END) AS clock_s,
    CASE WHEN t IS NULL THEN count(CASE WHEN name || coalesce(labels, '') = head THEN 1 END) OVER (PARTITION BY source ORDER BY line) END AS n
  FROM named
), scraped AS (
  -- a counter over its scrapes, in their order; in their own labels
  SELECT name, coalesce(labels, '') || coalesce(' ' || place, '') AS labels, coalesce(t, dense_rank() OVER (PARTITION BY place ORDER BY source, n)) AS t, clock_s,
    value, source || ':' || line AS ref, lag(value) OVER w AS before,
         row_number() OVER (PARTITION BY name, labels, place ORDER BY t DESC, source DESC, line DESC) AS nth
  FROM sheet
  WINDOW w AS (PARTITION BY name, labels, place ORDER BY t, source, line)
), anew AS (
  SELECT labels, t, sum(coalesce(max((value < before)::INT), 0)) OVER (PARTITION BY labels ORDER BY t) AS life
  FROM scraped
  GROUP BY labels, t
)
SELECT s.name, s.labels, s.t, s.clock_s, a.life::BIGINT AS life, s.value, s.before,
  s.value - CASE WHEN a.life > lag(a.life) OVER (PARTITION BY s.labels, s.name ORDER BY s.t) THEN 0 ELSE coalesce(s.before, 0) END AS more,
  s.nth, s.ref
FROM scraped s
JOIN anew a ON a.labels = s.labels AND a.t = s.t
