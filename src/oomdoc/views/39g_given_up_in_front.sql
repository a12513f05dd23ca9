-- says: calls that whoever stands in front gave up on (504) and whose age its log does not tell, beside the longest that was answered: what takes longer is cut; no row where there are none, or nothing was answered
-- scope: bundle
-- times: how many
-- requests: all recorded calls
-- longest_s: the longest that was answered
-- ref: the first of them
SELECT count(*) FILTER (given_up) AS times, count(*) AS requests, max(latency_s) FILTER (status BETWEEN 200 AND 399) AS longest_s,
  arg_min(source || ':' || line, line) FILTER (given_up) AS ref
FROM (SELECT *, status = 504 AND latency_s IS NULL AS given_up FROM request)
HAVING count(*) FILTER (given_up) >= $timer_times AND max(latency_s) FILTER (status BETWEEN 200 AND 399) >= $timer_least_s
