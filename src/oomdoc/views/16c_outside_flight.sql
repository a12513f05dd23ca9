-- says: requests in flight by their callers' own latencies, or by a sheet whose rows differ in how many ask at a time and take as much longer as more ask, against those that the engine knows of at the same moments: where it knows of few, the others wait in front of it; no row without both, or where several replicas share the requests
-- scope: incident
-- at_once: in flight at the most of such moments
-- known: running and waiting in the engine then, the most of it
-- moments: steps of the traffic with a line of statistics, or rows of the sheet
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
), sheet AS (
  -- who sends the next request when the last is answered is in flight all the time
  SELECT f.source, f.experiment, f.name, f.line, max(try_cast(t.value AS DOUBLE)) AS callers, any_value(f.value) AS latency_s
  FROM trial_figure f
  JOIN trial t USING (source, experiment, attempt)
  WHERE f.quantity = 'latency_s' AND f.value > 0
    AND regexp_matches(t.flag, '^@(?:n_?|num_?|max_?)?(?:concurren\w*|conc|clients?|parallel\w*|vus?|streams?|in_?flight|inflight)$')
  GROUP BY ALL
), swept AS (
  SELECT max(callers)::BIGINT AS at_once, count(*) AS moments, arg_max(source || ':' || line, callers) AS ref
  FROM sheet
  GROUP BY source, experiment, name
  -- twice as many take twice as long: no more are served at a time
  HAVING count(*) >= $outside_rows AND arg_max(latency_s, callers) >= $as_many_as * max(callers) / min(callers) * arg_min(latency_s, callers)
), apart AS (
  SELECT max(requests) FILTER (beyond) AS at_once, max(known) FILTER (beyond)::BIGINT AS known, count(*) AS moments,
    avg(beyond::INT) AS outside, arg_min(ref, (-requests, t)) FILTER (beyond) AS ref
  FROM judged, engines, replicas
  -- of prefill and decode apart one engine knows of a part of each request's time
  WHERE engines.n = 1 AND replicas.n <= 1 AND NOT EXISTS (FROM prefill_side)
  HAVING count(*) >= $outside_moments AND outside >= $outside_lasts
  UNION ALL
  SELECT w.at_once, k.known, w.moments, 1, w.ref
  FROM swept w, engines, (SELECT max(running + coalesce(waiting, 0))::BIGINT AS known, count(*) AS lines FROM seen.engine_stat WHERE running IS NOT NULL) k
  WHERE engines.n = 1 AND k.lines >= $outside_moments AND k.known > 0 AND w.at_once >= $outside_times * k.known + $outside_more
)
SELECT * FROM apart ORDER BY at_once DESC, ref LIMIT 1
