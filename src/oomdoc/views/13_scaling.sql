-- says: what an autoscaler sees and what it does; no row where none is described
-- scope: bundle
-- statements: rows about a scaler
-- blind: it states that its metric is missing, or that it skipped its analysis
-- blind_ref: where
-- blind_text: what it says
-- metric: the metric it follows, by its rule or by the reason of a decision
-- wrong_metric: the metric is CPU, host memory or GPU activity, none that shows queue or KV usage
-- metric_ref: where
-- moved: a decision or a change of replicas was made
-- replicas: the most replicas there were
-- maximum: the most it may set; NULL = not told
-- minimum: the fewest it may set; NULL = not told
-- workload: what it scales; NULL = not told
-- series: the one series of the engine, the host or the device in that metric
-- threshold: the value of it from which replicas are added; NULL = not told
-- queue: what the same server calls the number of requests that wait
-- made_by: keda, hpa, or NULL where no word of either is there
-- stands: there were never more replicas than at the beginning, although it may set more; NULL where either is not told, or several workloads are
-- replicas_ref: where
-- over: the largest share of samples in which a metric stood above the threshold of the scaler's own rule; NULL = no such metric or rule
-- over_metric: that metric
-- over_threshold: its threshold
-- under: the followed metric stayed at or below its threshold in every statement
-- under_value: its value in the statement that came nearest to its threshold
-- under_threshold: what it is compared with there
WITH named AS (
  -- a metric, or the one that a decision gives as its reason: `pods metric X above target`, `cpu resource utilization ... above target`
  SELECT source, line,
    -- a list of scalers may leave out what a description names
    CASE kind WHEN 'metric' THEN coalesce(name, CASE WHEN NOT EXISTS (FROM scaler WHERE kind = 'metric' AND name IS NOT NULL) THEN text END)
      ELSE coalesce(
        nullif(regexp_extract(text, '\breason: [^;]*?\bmetric ([\w:./-]+)', 1), ''),
        nullif(regexp_extract(text, '\breason: ([\w.-]+) resource utilization', 1), '')
      ) END AS metric
  FROM scaler WHERE kind IN ('metric', 'decision')
), follows AS (
  SELECT min_by(metric, line) AS metric, min_by(source || ':' || line, line) AS ref,
         bool_and(
           regexp_matches(metric, '(?i)cpu|memory|fb_used|gpu_util|duty_cycle|dcgm_fi|sm_active|sm_occupancy|engine_active')
             AND NOT regexp_matches(metric, '(?i)waiting|queue|cache|ttft|running')
         ) AS wrong
  FROM named WHERE metric IS NOT NULL
), of_series AS (
  SELECT *, coalesce(nullif(regexp_extract(metric, '([a-zA-Z_:][\w:]*)[{]', 1), ''), nullif(regexp_extract(metric, '^[\w:./-]+$'), '')) AS series FROM follows
), followed AS (
  SELECT name, any_value(threshold) AS threshold, regexp_replace(lower(name), '[^a-z0-9]+', '_', 'g') AS folded
  FROM scaler
  WHERE kind = 'metric' AND threshold IS NOT NULL
  GROUP BY name
), sampled AS (
  -- the rule's own metric in what was recorded of the servers: a metric, or a statistics line's figure
  SELECT f.name, f.threshold, m.value FROM followed f JOIN metric m ON regexp_replace(lower(m.name), '[^a-z0-9]+', '_', 'g') = f.folded
), over AS (
  SELECT name, threshold, avg((value > threshold)::INT) AS share, count(*) AS n FROM sampled GROUP BY name, threshold
  HAVING count(*) >= $scaler_samples ORDER BY share DESC LIMIT 1
), counted AS (
  SELECT max(replicas) AS replicas, arg_min(replicas, (coalesce(t, 0), source, line)) AS first, max(maximum) AS maximum,
         min(minimum) AS minimum, any_value(target) AS workload,
         min_by(source || ':' || line, line) FILTER (replicas IS NOT NULL) AS ref
  FROM scaler HAVING count(DISTINCT target) <= 1  -- the replicas of one workload and the bounds of another make no sentence
), latest AS (
  SELECT arg_max(value, value / threshold) AS value, arg_max(threshold, value / threshold) AS threshold FROM (
    SELECT value, threshold
    FROM scaler
    WHERE kind = 'metric' AND threshold > 0
    UNION ALL
    SELECT value, threshold
    FROM sampled
    WHERE threshold > 0
  ) HAVING bool_and(value <= threshold)
)
SELECT count(*) AS statements, bool_or(kind = 'blind') AS blind, min_by(source || ':' || line, line) FILTER (kind = 'blind') AS blind_ref,
  min_by(text, line) FILTER (kind = 'blind') AS blind_text,
  any_value(f.metric) AS metric, any_value(f.wrong) AS wrong_metric, any_value(f.ref) AS metric_ref,
  coalesce(bool_or((kind = 'decision' AND coalesce(status, '') <> '0') OR (kind = 'replicas' AND status <> 'unchanged') OR x.desired > x.replicas)
    OR any_value(c.replicas > c.first), false) AS moved,
  any_value(c.replicas) AS replicas, any_value(c.maximum) AS maximum, any_value(c.minimum) AS minimum, any_value(c.workload) AS workload,
  any_value(f.series) AS series,
  any_value(CASE WHEN f.series LIKE 'llamacpp:%' THEN 'llamacpp:requests_deferred' WHEN f.series LIKE 'sglang:%' THEN 'sglang:num_queue_reqs'
    WHEN f.series LIKE 'tgi\_%' ESCAPE '\' THEN 'tgi_queue_size' ELSE 'vllm:num_requests_waiting' END) AS queue,
  any_value(threshold ORDER BY source, line) FILTER (kind = 'metric') AS threshold,
  CASE WHEN bool_or(regexp_matches(concat_ws(' ', name, text), '(?i)keda|scaledobject|\btriggers?\b|\w[(]')) THEN 'keda'
    WHEN bool_or(name IN ('AbleToScale', 'ScalingActive', 'ScalingLimited') OR regexp_matches(text, '(?i)\bhpa\b|horizontal ?pod|MINPODS|% ?/ ?\d+%'))
      THEN 'hpa' END AS made_by,
  any_value(c.replicas = c.first AND c.replicas < c.maximum) AS stands,
    any_value(c.ref) AS replicas_ref,
  (SELECT share FROM over) AS over, (SELECT name FROM over) AS over_metric, (SELECT threshold FROM over) AS over_threshold,
  (SELECT count(*) > 0 FROM latest) AS under, (SELECT value FROM latest) AS under_value, (SELECT threshold FROM latest) AS under_threshold
FROM scaler x LEFT JOIN counted c ON true, of_series f HAVING count(*) > 0
