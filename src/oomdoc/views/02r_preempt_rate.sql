-- says: how many of the requests that were done had been preempted, where both are counted; no row otherwise
-- scope: bundle
-- preempted_most: preemptions at most: V0 tells the first and then every fiftieth
-- done: requests that were done, by counters of the servers, by the bars of an offline run, by a sheet of requests or by one that counts them by the day
-- rare: so few that what was computed twice costs hardly anything
-- ref: where the preemptions are counted
WITH warned AS (
  SELECT max(coalesce(cumulative + $between_warnings, 1)) AS n, count(*) AS lines, bool_and(cumulative IS NULL) AS uncounted, min_by(source || ':' || line, line) AS ref FROM preemption
), counted AS (
  SELECT name, labels, max(value) AS value, max(value) - min(value) AS more, max_by(source || ':' || line, value) AS ref
  FROM metric
  WHERE name IN ('vllm:num_preemptions_total', 'vllm:num_preemptions', 'vllm:request_success_total', 'vllm:request_success') AND labels IS DISTINCT FROM 'delta'
  GROUP BY ALL
), counter AS (
  -- where several readings show it rise, of what was done between them: a quiet week before says nothing of the hour in which they came
  SELECT CASE WHEN risen > 0 AND done_since > 0 THEN risen ELSE preempted END AS preempted, CASE WHEN risen > 0 AND done_since > 0 THEN done_since ELSE done END AS done, ref
  FROM (
    SELECT sum(value) FILTER (name LIKE 'vllm:num_preemptions%') AS preempted, sum(value) FILTER (name LIKE 'vllm:request_success%') AS done,
      sum(more) FILTER (name LIKE 'vllm:num_preemptions%') AS risen, sum(more) FILTER (name LIKE 'vllm:request_success%') AS done_since,
      min(ref) FILTER (name LIKE 'vllm:num_preemptions%') AS ref
    FROM counted
  )
), run AS (
  SELECT sum(try_cast(text AS BIGINT)) AS done FROM milestone WHERE name = 'serving'
), sheet AS (
  SELECT count(*) AS done FROM request WHERE coalesce(status < 400, output_tokens > 0)
), days AS (
  -- what never falls from row to row is a counter itself
  SELECT CASE WHEN bool_and(value >= coalesce(before, value)) AND count(*) > 1 THEN max(value) ELSE sum(value) END AS done
  FROM (SELECT source, value, lag(value) OVER (PARTITION BY source ORDER BY line) AS before FROM trial_figure WHERE quantity = 'sent') GROUP BY source ORDER BY done DESC LIMIT 1
), told AS (
  -- what is told once is once, where a warning counts
  SELECT CASE WHEN w.lines = 1 AND w.uncounted THEN 1 ELSE greatest(w.n, w.lines, c.preempted) END AS preempted_most, greatest(c.done, r.done, s.done, (SELECT done FROM days)) AS done, coalesce(c.ref, w.ref) AS ref FROM warned w, counter c, run r, sheet s
)
SELECT preempted_most::BIGINT AS preempted_most, done::BIGINT AS done, preempted_most <= $rarely_preempted * done AS rare, ref
FROM told
WHERE preempted_most > 0 AND done > 0
