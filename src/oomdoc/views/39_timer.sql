-- says: requests that end without an answer at one and the same age: a timer ends them and no lack of anything; no row where there are none
-- scope: bundle
-- seconds: the age at which they end, median
-- times: how many end there
-- ended: how many end without an answer at all
-- requests: all recorded requests with a duration
-- answered_longest_s: the longest that was answered
-- tenant: whose they are, where all are of one; NULL = of several, or not told
-- ref: the first of them
WITH ended AS (
  -- no answer, a client that went away, or an error of whoever stands in between, which calls a time-out by many numbers: a request that is refused takes no
  -- time, and 500 is what the engine itself says of a failure
  SELECT source, line, latency_s, tenant FROM request WHERE (status = 0 OR (status >= 400 AND status <> 500)) AND latency_s >= $timer_least_s
), middle AS (
  SELECT median(latency_s) AS seconds, count(*) AS ended FROM ended
), timed AS (
  SELECT e.*, m.seconds, m.ended FROM ended e, middle m WHERE abs(e.latency_s - m.seconds) <= $timer_spread * m.seconds
), answered AS (
  SELECT max(latency_s) FILTER (status BETWEEN 200 AND 399) AS longest, count(latency_s) AS requests FROM request
)
SELECT any_value(seconds) AS seconds, count(*) AS times, any_value(ended) AS ended, any_value(requests) AS requests,
  any_value(longest) AS answered_longest_s,
  CASE WHEN count(DISTINCT tenant) = 1 AND count(tenant) = count(*) THEN any_value(tenant) END AS tenant,
    arg_min(source || ':' || line, line) AS ref
FROM timed, answered
HAVING count(*) >= $timer_times AND count(*) >= $timer_share * any_value(ended)
