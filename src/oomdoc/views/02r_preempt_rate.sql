-- says: how many of the requests that were done had been preempted, where both are counted; no row otherwise
-- scope: bundle
-- preempted_most: preemptions at most: V0 tells the first and then every fiftieth
-- done: requests that were done, by counters of the servers, by the bars of an offline run or by a sheet of requests
-- rare: so few that what was computed twice costs hardly anything
-- ref: where the preemptions are counted
WITH warned AS (
  SELECT max(coalesce(cumulative + $between_warnings, 1)) AS n, count(*) AS lines, bool_and(cumulative IS NULL) AS uncounted, min_by(source || ':' || line, line) AS ref FROM preemption
), counter AS (
  SELECT sum(value) FILTER (name LIKE 'vllm:num_preemptions%') AS preempted, sum(value) FILTER (name LIKE 'vllm:request_success%') AS done,
    min(ref) FILTER (name LIKE 'vllm:num_preemptions%') AS ref
  FROM (
    SELECT name, labels, max(value) AS value, max_by(source || ':' || line, value) AS ref
    FROM metric
    WHERE name IN ('vllm:num_preemptions_total', 'vllm:num_preemptions', 'vllm:request_success_total', 'vllm:request_success') AND labels IS DISTINCT FROM 'delta'
    GROUP BY ALL
  )
), run AS (
  SELECT sum(try_cast(text AS BIGINT)) AS done FROM milestone WHERE name = 'serving'
), sheet AS (
  SELECT count(*) AS done FROM request WHERE coalesce(status < 400, output_tokens > 0)
), told AS (
  -- what is told once is once, where a warning counts
  SELECT CASE WHEN w.lines = 1 AND w.uncounted THEN 1 ELSE greatest(w.n, w.lines, c.preempted) END AS preempted_most, greatest(c.done, r.done, s.done) AS done, coalesce(c.ref, w.ref) AS ref FROM warned w, counter c, run r, sheet s
)
SELECT preempted_most::BIGINT AS preempted_most, done::BIGINT AS done, preempted_most <= $rarely_preempted * done AS rare, ref
FROM told
WHERE preempted_most > 0 AND done > 0
