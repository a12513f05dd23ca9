-- says: how replicas followed what the scaler itself measured; no row where no autoscaler is described
-- scope: bundle
-- statements: statements that tell the followed metric, its threshold and the replicas there were
-- called: share of them in which that metric called for twice the replicas or more, and more were allowed; NULL = none
-- value: the followed metric where it called for most, in its own unit
-- threshold: what it is compared with there
-- replicas: replicas there were then
-- wanted: replicas that it called for: replicas x value / threshold
-- maximum: the most that were allowed then
-- called_ref: where
-- held: the scaler wants more replicas than its maximum, by its own condition or by the metric at the last statement
-- held_ref: where
-- held_wanted: replicas that the metric asks for at the last statement: replicas x value / threshold; NULL = not told
-- limited: its own condition says that a rate of change holds it back
-- limited_ref: where
-- inactive: its own condition says that its triggers see nothing to do, or that nothing asks it for a place
-- inactive_ref: where
-- followed: replicas rose while the metric was above its threshold, and the metric came back below it before the maximum was reached
-- followed_ref: where it was highest
-- asked: a series of the engine that the rule asks for and that no scrape of the bundle has, although the scrapes have one like it
-- exposed: the one like it
-- asked_ref: where the rule stands
-- spread_value: mean of the followed series over all that answer, where the rule averages it, at the last moment at which it is below the threshold
-- spread_model: the model whose own mean is above the threshold then
-- spread_mean: that mean
-- late: waves of waiting requests for which replicas were added that answered only when nobody waited any more
-- late_waiting: most requests that waited in one of them
-- late_s: seconds from the request for replicas to their answer in the last of them; NULL = not told
-- late_ref: where the last of them answered
-- rested_from: replicas at the beginning of a recording in which nobody ever waited and the pool was next to empty; NULL = no such recording
-- rested_to: the most there were in it
-- rested_used: the fullest that the pool was
-- rested_ref: where there were most for the first time
-- waiting_max: most requests that waited, by statistics lines, metrics or tables
-- queued: samples with requests waiting
-- running_max: most requests that ran
-- waiting_ref: where most waited
WITH stated AS (
  SELECT source, line, value, threshold, replicas, maximum, value / threshold * replicas AS wanted, source || ':' || line AS ref
  FROM scaler WHERE value IS NOT NULL AND threshold > 0 AND replicas > 0
), bound AS (
  SELECT s.*, coalesce(s.maximum, m.maximum) AS most FROM stated s, (SELECT max(maximum) AS maximum FROM scaler) m
), called AS (
  SELECT count(*) AS statements,
    avg((least(ceil(wanted), most) >= $scaler_twice * replicas)::INT) FILTER (most IS NOT NULL) AS share,
         arg_max(struct_pack(value, threshold, replicas, wanted, most, ref), least(wanted, most) - replicas) FILTER (most > replicas) AS top
         FROM bound
), latest AS (
  -- the last statement of the metric and of the replicas, which describe tells on two lines
  SELECT arg_max(value / threshold, (source, line)) FILTER (threshold > 0) AS ratio,
    arg_max(replicas, (source, line)) FILTER (replicas > 0) AS replicas, max(maximum) AS maximum,
         arg_max(source || ':' || line, (source, line)) FILTER (value IS NOT NULL AND threshold > 0) AS ref
  FROM scaler HAVING count(DISTINCT target) <= 1
), condition AS (
  SELECT min(source || ':' || line) FILTER (
    regexp_matches(text, 'TooManyReplicas|more than the maximum replica count') AND status = 'True'
  ) AS held_ref,
         min(source || ':' || line) FILTER (regexp_matches(text, 'ScaleUpLimit|ScaleUpStabilized|increasing faster than the maximum scale rate')) AS limited_ref,
         min(source || ':' || line) FILTER (
           (name = 'Active' AND status = 'False' AND text ILIKE '%triggers are not active%') OR (name = 'Demands' AND status = 'False')
         ) AS inactive_ref
  FROM scaler WHERE kind = 'condition'
), rose AS (
  SELECT source, max(value / threshold) AS peak, arg_max(ref, value / threshold) AS ref, arg_max(value / threshold, line) AS last_ratio,
    max(replicas) AS replicas, arg_min(replicas, line) AS first_replicas, max(most) AS most
  FROM bound
  GROUP BY source
), followed AS (
  SELECT bool_or(peak > 1 AND replicas > first_replicas AND last_ratio <= 1 AND replicas < most) AS holds, min(ref) FILTER (peak > 1) AS ref
  FROM rose
), rule AS (
  SELECT name, source || ':' || line AS ref, threshold, unnest(regexp_extract_all(name, 'vllm:[a-z_0-9]+')) AS series
  FROM scaler
), exposed AS (
  SELECT DISTINCT name FROM metric WHERE name LIKE 'vllm:%'
), asked AS (
  -- like it: the last two words of both names are the same
  SELECT min(r.series) AS series, min_by(e.name, r.series) AS exposed, min_by(r.ref, r.series) AS ref
  FROM rule r
  JOIN exposed e ON regexp_extract(e.name, '[a-z]+_[a-z]+$') = regexp_extract(r.series, '[a-z]+_[a-z]+$')
  WHERE r.series NOT IN (FROM exposed)
), series AS (
  SELECT m.t, m.name, m.labels, nullif(regexp_extract(m.labels, 'model_name="([^"]*)"', 1), '') AS model, m.value, r.threshold
  FROM metric m
  JOIN rule r ON r.series = m.name
  WHERE regexp_matches(r.name, '(?i)avg|/ *count|mean')
), meant AS (
  SELECT t, name, any_value(threshold) AS threshold, avg(value) AS value, count(DISTINCT model) AS models FROM series GROUP BY t, name
), own AS (
  SELECT t, name, model, avg(value) AS mean FROM series GROUP BY ALL
), spread AS (
  SELECT m.value, o.model, o.mean
  FROM meant m
  JOIN own o USING (t, name)
  WHERE m.models > 1 AND m.value <= m.threshold AND o.mean > m.threshold
  ORDER BY t DESC, o.mean DESC
  LIMIT 1
), fleet AS (
  -- replicas there are, those that answer, and the queue, in rows of one table
  SELECT s.source, s.line, s.t, s.replicas, s.ready, e.waiting, lag(s.replicas) OVER w AS before
  FROM scaler s
  JOIN engine_stat e ON e.source = s.source AND e.line = s.line
  WHERE s.replicas IS NOT NULL AND s.ready IS NOT NULL AND e.waiting IS NOT NULL
  WINDOW w AS (PARTITION BY s.source ORDER BY s.line)
), surge AS (
  SELECT a.source, a.line, a.t, a.replicas, min(b.line) AS ready_line
  FROM fleet a
  JOIN fleet b ON b.source = a.source AND b.line > a.line AND b.ready >= a.replicas
  WHERE a.replicas > a.before AND a.ready < a.replicas AND a.waiting > 0 GROUP BY ALL
), late AS (
  SELECT w.source, w.line, w.ready_line, max(f.waiting) AS waiting, arg_max(f.waiting, f.line) AS at_ready,
    arg_max(f.t, f.line) - any_value(w.t) AS seconds
  FROM surge w
  JOIN fleet f ON f.source = w.source AND f.line BETWEEN w.line AND w.ready_line
  GROUP BY ALL
  HAVING max(f.waiting) >= $scaler_queue AND arg_max(f.waiting, f.line) = 0
), waves AS (
  SELECT count(*) AS n, max(waiting) AS waiting, arg_max(seconds, ready_line) AS seconds,
    arg_max(source || ':' || ready_line, ready_line) AS ref
  FROM late
), rested AS (
  -- replicas and load in rows of one table: who adds replicas there does not look at what requests need
  SELECT arg_min(s.replicas, s.line) AS from_replicas, max(s.replicas) AS to_replicas, max(e.kv_used) AS used,
    arg_max(s.source || ':' || s.line, (s.replicas, -s.line::BIGINT)) AS ref
  FROM scaler s
  JOIN engine_stat e ON e.source = s.source AND e.line = s.line
  WHERE s.replicas IS NOT NULL AND e.waiting IS NOT NULL AND e.kv_used IS NOT NULL
  GROUP BY s.source
  HAVING count(*) >= $scaler_samples AND max(e.waiting) = 0 AND max(e.kv_used) <= $rested_pool
  ORDER BY max(s.replicas) DESC
  LIMIT 1
), load AS (
  SELECT max(waiting) AS waiting, count(*) FILTER (waiting > 0) AS queued, max(running) AS running, arg_max(ref, waiting) AS ref FROM (
    SELECT waiting, running, source || ':' || line AS ref FROM engine_stat
    UNION ALL
    SELECT max(value) FILTER (name = 'vllm:num_requests_waiting'), max(value) FILTER (name = 'vllm:num_requests_running'),
      min(source || ':' || line)
    FROM metric
    WHERE name IN ('vllm:num_requests_waiting', 'vllm:num_requests_running')
    GROUP BY source, coalesce(t, line))
)
SELECT c.statements, c.share AS called, c.top.value AS value, c.top.threshold AS threshold, c.top.replicas AS replicas,
  c.top.wanted AS wanted, c.top.most AS maximum, c.top.ref AS called_ref,
  coalesce(d.held_ref IS NOT NULL OR (l.replicas >= l.maximum AND ceil(l.ratio * l.replicas) > l.maximum), false) AS held,
    coalesce(d.held_ref, l.ref) AS held_ref, ceil(l.ratio * l.replicas) AS held_wanted,
  d.limited_ref IS NOT NULL AS limited, d.limited_ref, d.inactive_ref IS NOT NULL AS inactive, d.inactive_ref,
    coalesce(f.holds, false) AS followed, f.ref AS followed_ref,
  a.series AS asked, a.exposed, a.ref AS asked_ref, p.value AS spread_value, p.model AS spread_model, p.mean AS spread_mean,
  w.n AS late, w.waiting AS late_waiting, w.seconds AS late_s, w.ref AS late_ref,
  z.from_replicas AS rested_from, z.to_replicas AS rested_to, z.used AS rested_used, z.ref AS rested_ref, load.waiting AS waiting_max,
    load.queued, load.running AS running_max, load.ref AS waiting_ref
FROM called c
LEFT JOIN latest l ON true, condition d, followed f, asked a
LEFT JOIN spread p ON true, waves w
LEFT JOIN rested z ON true, load
WHERE EXISTS (FROM scaler)
