-- says: callers that hang up together: requests aborted on lines that follow each other, while the server worked on as before; no row where none did, or where the server had a queue, swapped or grew slow
-- scope: bundle
-- times: how many
-- running: requests that ran before
-- waiting: requests that waited before
-- kv_used: share of the pool in use before
-- tokens_s: generated tokens per second before
-- usual_tokens_s: median of the statistics lines up to then
-- ref: the first of them
WITH gone AS (
  SELECT source, line, line - row_number() OVER (PARTITION BY source ORDER BY line) AS island FROM note WHERE topic = 'aborted-request'
), leaving AS (
  SELECT source, min(line) AS line, count(*) AS times FROM gone GROUP BY source, island HAVING count(*) >= $hung_up
), before AS (
  SELECT w.source, w.line, w.times,
    arg_max(
      struct_pack(
        running := x.running, waiting := x.waiting, swapped := x.swapped, kv_used := x.kv_used, rate := x.generation_tokens_per_s
      ), x.line
    ) AS last, median(x.generation_tokens_per_s) AS usual
  FROM leaving w JOIN engine_stat x ON x.source = w.source AND x.line < w.line WHERE x.running > 0 GROUP BY ALL
)
SELECT times, last.running AS running, last.waiting AS waiting, last.kv_used AS kv_used, last.rate AS tokens_s, usual AS usual_tokens_s,
  source || ':' || line AS ref
-- where all leave, whoever sent them has ended, unless as many leave again
FROM (SELECT *, count(*) OVER (PARTITION BY source) AS waves FROM before)
WHERE times >= $hung_up_share * last.running AND (times < last.running OR waves >= $hung_up_again) AND coalesce(last.waiting, 0) = 0 AND coalesce(last.swapped, 0) = 0
  AND last.rate >= $rate_kept * usual
ORDER BY times DESC, source, line LIMIT 1
