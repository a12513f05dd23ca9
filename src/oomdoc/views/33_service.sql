-- says: what users see under several conditions: the latency of one name whose largest value is farthest above its smallest; no row where nobody compares
-- scope: bundle
-- quantity: ttft_s (time to the first token), tpot_s (time per further token), latency_s (of whole requests)
-- low: the smallest, seconds
-- high: the largest, seconds
-- times: high / low
-- low_label: condition of the smallest
-- high_label: condition of the largest
-- load: the conditions are amounts of load (clients, requests a second, tokens), and the largest latency has more of it: that takes longer on any server
-- pressed: beside the largest stands that requests waited, or that the pool was crowded
-- anew: of the prompts beside the largest twice as much had to be computed as beside the smallest: what was found in a cache makes the difference
-- ref: where the largest stands
WITH stated AS (
  SELECT source, experiment, attempt, row_number() OVER () AS nth, CASE WHEN flag = '@said' THEN value ELSE flag[2:] || ' ' || value END AS text
  FROM trial
  WHERE attempt IS NOT NULL
), label AS (
  SELECT source, experiment, attempt, arg_min(text, nth) AS label,
    -- what is computed once and what is found again are two things
    CASE WHEN bool_or(regexp_matches(lower(text), '\b(cold|uncached|first[ _-](pass|round|run|time|turn))\b')) THEN 'cold'
      WHEN bool_or(regexp_matches(lower(text), '\b(warm|warmed|hot|cached|second[ _-](pass|round|run|time|turn))\b')) THEN 'warm' END AS warmth,
    -- a control without a cache is slower by design
    bool_or(regexp_matches(lower(text), '\b(no|without)[ _-](\w+[ _-])?cach|\bcach\w*[ _:=-]+(off|false|disabled|none)\b')) AS control,
         max(
           try_cast(regexp_extract(text, '\d+(?:\.\d+)?') AS DOUBLE)
         ) FILTER (regexp_matches(lower(text), '\b(clients?|users?|conc|concurren\w+|parallel\w*|vus?|workers?|threads?|rps|qps|rate|load|batch|requests?|requests?_s|req|req_s|req_per_s\w*|in_?flight|streams?|sessions?|agents?|num_prompts|max_num\w*|tokens?|length|len|input|output|context|isl|osl)\b|^[a-z]+_(rps|qps|concurrency|clients|users) ')) AS amount
  FROM stated GROUP BY ALL
), offered AS (
  -- what was offered or in flight, as a column beside the latency
  SELECT source, experiment, attempt, max(value) AS amount
  FROM trial_figure
  WHERE regexp_matches(name, '^(max_|num_|n_)?(concur\w*|conc|in_flight|clients?|users|streams|req_s|req_per_s|requests_s|rps|qps|rate|request_rate|sent|requests|prompts)$')
  GROUP BY ALL
), paced AS (
  -- a rate that is told in words among its like: all at once is more than any
  SELECT source, experiment, attempt, max(CASE WHEN rate SIMILAR TO '[0-9.]+' THEN try_cast(rate AS DOUBLE) ELSE 'inf'::DOUBLE END) AS amount
  FROM (
    SELECT *, regexp_extract(lower(text), '\b(?:rps|qps|rate|request_rate)=(\d+(?:\.\d+)?|inf(?:inity)?|max|unlimited|unbounded)\b', 1) AS rate FROM trial WHERE attempt IS NOT NULL
  )
  WHERE rate <> ''
  GROUP BY ALL
), cached AS (
  -- what of a row's prompts had to be computed
  SELECT source, experiment, attempt, 1 - coalesce(max(value) FILTER (quantity = 'hit_rate'),
    max(value) FILTER (quantity = 'hit_tokens') / nullif(max(value) FILTER (quantity = 'asked_tokens'), 0)) AS computed
  FROM trial_figure
  WHERE quantity IN ('hit_rate', 'hit_tokens', 'asked_tokens')
  GROUP BY ALL
), told AS (
  -- what a cold pass costs beside a warm one is the price of computing where the same without a cache stands beside it
  SELECT f.*, l.label, CASE WHEN bool_or(coalesce(l.control, false)) OVER (PARTITION BY f.source, f.experiment) THEN l.warmth END AS warmth, coalesce(l.control, false) AS control, coalesce(o.amount, p.amount, l.amount) AS amount, c.computed
  FROM trial_figure f
  LEFT JOIN label l USING (source, experiment, attempt)
  LEFT JOIN paced p USING (source, experiment, attempt)
  LEFT JOIN offered o USING (source, experiment, attempt)
  LEFT JOIN cached c USING (source, experiment, attempt)
  WHERE f.quantity IN ('ttft_s', 'tpot_s', 'latency_s') AND f.value > 0
), crowd AS (
  SELECT source, experiment, attempt, bool_or((regexp_matches(lower(name), 'wait|queue') AND value >= 1)
    OR (
      regexp_matches(lower(name), '(kv|cache|pool).*(us|perc|full|fill)') AND NOT regexp_matches(lower(name), 'hit')
        AND (value BETWEEN $pool_crowded AND 1 OR value BETWEEN 100 * $pool_crowded AND 100)
    )) AS pressed
  FROM trial_figure WHERE NOT regexp_matches(lower(name), '_s$|_ms$|time|latency|ttft') GROUP BY ALL
), beside AS (
  -- the same row as the vocabulary reads it, in whatever tongue its columns are named
  SELECT source, line, bool_or(waiting >= 1 OR kv_used >= $pool_crowded) AS pressed FROM engine_stat GROUP BY ALL
), compared AS (
  -- of one row each: an aggregate passes over NULL and would take the label of the next
  SELECT quantity, min(value) AS low, max(value) AS high, max(value) / min(value) AS times, arg_min({'x': label}, value).x AS low_label,
  arg_max({'x': label}, value).x AS high_label,
       coalesce(arg_max({'x': amount}, value).x > arg_min({'x': amount}, value).x, false) AS load,
       coalesce(arg_max({'x': coalesce(c.pressed, false) OR coalesce(b.pressed, false)}, value).x, false) AS pressed,
       coalesce(arg_max({'x': computed}, value).x >= $computed_more * arg_min({'x': computed}, value).x, false) AS anew,
         arg_max(source || ':' || line, value) AS ref
FROM told
LEFT JOIN crowd c USING (source, experiment, attempt)
LEFT JOIN beside b USING (source, line)
WHERE NOT control
GROUP BY source, experiment, name, quantity, warmth
HAVING count(*) >= 2 AND NOT EXISTS (FROM trial x WHERE x.source = told.source AND x.experiment = told.experiment AND x.flag NOT LIKE '@%')
)
-- what a sentence tells in round figures, and a table shows to come with more callers, comes with more callers
SELECT *
FROM compared c
WHERE c.load
  OR NOT EXISTS (
    FROM compared l WHERE l.load AND l.quantity = c.quantity AND l.low <= $told_roughly * c.low AND l.high >= c.high / $told_roughly
  )
ORDER BY load, times DESC, ref LIMIT 1
