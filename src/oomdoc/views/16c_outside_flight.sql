-- says: requests in flight by their callers' own latencies, against those that the engine knows of at the same moments: where it knows of few, the others wait in front of it; no row without both, or where several replicas share the requests
-- scope: incident
-- at_once: in flight at the most of such moments
-- known: running and waiting in the engine then, the most of it
-- moments: steps of the traffic with a line of statistics
-- outside: share of them in which many more were in flight than the engine knows of
-- ref: a line of statistics of such a moment
WITH engines AS (
  SELECT count(DISTINCT source) AS n FROM seen.engine_stat
), replicas AS (
  SELECT count(DISTINCT replica) AS n FROM request
), moment AS (
  SELECT f.t, any_value(f.requests) AS requests, max(s.running + coalesce(s.waiting, 0)) AS known, min(s.source || ':' || s.line) AS ref
  FROM traffic_flight f
  JOIN seen.engine_stat s ON s.t >= f.t AND s.t < f.t + f.step_s AND s.running IS NOT NULL
  GROUP BY f.t
), judged AS (
  SELECT *, requests >= $outside_times * known + $outside_more AS beyond FROM moment
)
SELECT max(requests) FILTER (beyond) AS at_once, max(known) FILTER (beyond)::BIGINT AS known, count(*) AS moments,
  avg(beyond::INT) AS outside, arg_min(ref, (-requests, t)) FILTER (beyond) AS ref
FROM judged, engines, replicas
-- of prefill and decode apart one engine knows of a part of each request's time
WHERE engines.n = 1 AND replicas.n <= 1 AND NOT EXISTS (FROM prefill_side)
HAVING count(*) >= $outside_moments AND outside >= $outside_lasts
