-- says: what an autoscaler sees; no row where none is described
-- scope: bundle
-- statements: rows about a scaler
-- blind: it states that its metric is missing, or that it skipped its analysis
-- blind_ref: where
-- blind_text: what it says
-- metric: the metric it follows
-- wrong_metric: the metric is CPU, host memory or GPU activity, none that shows queue or KV usage
-- metric_ref: where
-- moved: a decision or a change of replicas was made
SELECT count(*) AS statements, bool_or(kind = 'blind') AS blind, min_by(source || ':' || line, line) FILTER (kind = 'blind') AS blind_ref, min_by(text, line) FILTER (kind = 'blind') AS blind_text,
  min_by(coalesce(name, text), line) FILTER (kind = 'metric') AS metric,
  bool_and(regexp_matches(coalesce(name, text), '(?i)cpu|memory|fb_used|gpu_util|duty_cycle|dcgm_fi|sm_active|sm_occupancy|engine_active') AND NOT regexp_matches(coalesce(name, text), '(?i)waiting|queue|cache|ttft|running')) FILTER (kind = 'metric') AS wrong_metric,
  min_by(source || ':' || line, line) FILTER (kind = 'metric') AS metric_ref, bool_or(kind IN ('decision', 'replicas') AND coalesce(status, '') NOT IN ('0', 'unchanged')) AS moved
FROM scaler HAVING count(*) > 0
