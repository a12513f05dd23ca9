-- says: what a complaint is measured by: what users get against what they were promised, and where their seconds and their failures arise, before the engine or in it; one row always, NULL where nobody measured
-- scope: bundle
-- goal_s: seconds that were promised, of the statement that comes nearest to them or is farthest beyond
-- reached_s: seconds that it says were reached
-- goal_ref: where that stands
-- answered: least share of the requests that were answered, as a text counts them
-- answered_ref: where
-- same_low_s: of a latency that was measured at two or more times and is nearly the same, the smallest
-- same_high_s: the largest
-- same_ref: where it stands
-- client_s: the longest that clients wait, as they or who stands before the engine measure it, seconds
-- client_ref: where
-- engine_s: what the engine's own histograms say of the time to the first token, or of queue and prefill together; mean seconds
-- engine_ref: where
-- outer_ok: requests that whoever stands before the engine saw answered, one by one or as a sheet counts them
-- outer_failed: requests that he saw fail with a status of 5xx, or without an answer; of a sheet what it counts as failed
-- outer_failed_s: seconds that these took, their median
-- outer_ok_s: seconds of those that were answered, their median
-- engine_done: requests that the engine counted as finished in the same time
-- outer_ref: the first that failed
WITH goal AS (
  SELECT g.value AS goal_s, r.value AS reached_s, g.source || ':' || g.line AS ref
  FROM note g
  JOIN note r ON r.source = g.source AND r.line = g.line AND r.topic = 'reached-seconds'
  WHERE g.topic = 'goal-seconds' AND g.value > 0 ORDER BY r.value / g.value DESC, ref LIMIT 1
), share AS (
  SELECT min(value) AS answered, arg_min(source || ':' || line, value) AS ref FROM note WHERE topic = 'answered-share'
), steady AS (
  -- of two times: two replicas or two settings side by side say nothing of before
  SELECT low, high, ref FROM service WHERE times <= $latency_same AND NOT load AND quantity <> 'tpot_s'
    AND list_aggregate(
      [regexp_matches(
        coalesce(l, ''),
        '(?i)\b(before|after|since|yesterday|today|now|then|last|this|week|day|month|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\d{4}-\d\d|\b\d\d?:\d\d\b'
      ) FOR l IN [low_label, high_label]], 'bool_and'
    )
), client AS (
  SELECT max(value) AS seconds, arg_max(source || ':' || line, value) AS ref FROM note WHERE topic = 'client-seconds'
), part AS (
  -- of a difference its values, of a counter that was read twice the difference, of one reading what it stands at
  SELECT regexp_extract(name, '^vllm:(\w+)_seconds_(sum|count)$', 1) AS what, regexp_extract(name, '_(sum|count)$', 1) AS which, source,
    labels,
         CASE WHEN labels = 'delta' THEN sum(value) WHEN count(*) > 1 THEN max(value) - min(value) ELSE max(value) END AS value,
           min(source || ':' || line) AS ref
  FROM metric
  WHERE name IN ('vllm:time_to_first_token_seconds_sum', 'vllm:time_to_first_token_seconds_count', 'vllm:request_queue_time_seconds_sum', 'vllm:request_queue_time_seconds_count',
    'vllm:request_prefill_time_seconds_sum', 'vllm:request_prefill_time_seconds_count') GROUP BY name, source, labels
), mean AS (
  SELECT what, sum(value) FILTER (which = 'sum') / nullif(sum(value) FILTER (which = 'count'), 0) AS seconds, min(ref) AS ref
  FROM part
  GROUP BY what
), engine_side AS (
  SELECT coalesce(
    max(seconds) FILTER (what = 'time_to_first_token'),
    max(seconds) FILTER (what = 'request_prefill_time') + coalesce(max(seconds) FILTER (what = 'request_queue_time'), 0)
  ) AS seconds, min(ref) AS ref
  FROM mean
), outer_side AS (
  SELECT count(CASE WHEN status BETWEEN 200 AND 399 THEN 1 END) AS ok, count(CASE WHEN status = 0 OR status >= 500 THEN 1 END) AS failed,
    median(latency_s) FILTER (status >= 500) AS failed_s, median(latency_s) FILTER (status BETWEEN 200 AND 399) AS ok_s,
    (SELECT min_by(source || ':' || line, line) FROM request WHERE status = 0 OR status >= 500) AS ref
  FROM request
  WHERE status IS NOT NULL
), sheet AS (
  -- who counts what became of his requests: the sheet that counts most of them
  SELECT sum(value) FILTER (quantity = 'answered') AS answered, sum(value) FILTER (quantity = 'sent') AS sent,
    sum(value) FILTER (quantity = 'failed') AS failed, coalesce(min(line) FILTER (quantity = 'failed' AND value > 0), min(line)) AS line, source
  FROM trial_figure
  WHERE quantity IN ('answered', 'sent', 'failed')
  GROUP BY source, experiment HAVING failed IS NOT NULL AND coalesce(answered, sent) > 0 ORDER BY coalesce(answered, sent) DESC, source, line LIMIT 1
), done AS (
  SELECT sum(value) AS n FROM (
    SELECT CASE WHEN labels = 'delta' THEN sum(value) ELSE max(value) - min(value) END AS value
    FROM metric
    WHERE name = 'vllm:request_success_total'
    GROUP BY source, labels
    HAVING labels = 'delta' OR count(*) > 1)
)
SELECT goal.goal_s, goal.reached_s, goal.ref AS goal_ref, share.answered, share.ref AS answered_ref, steady.low AS same_low_s,
  steady.high AS same_high_s, steady.ref AS same_ref,
  client.seconds AS client_s, client.ref AS client_ref, engine_side.seconds AS engine_s, engine_side.ref AS engine_ref,
  coalesce(nullif(outer_side.ok, 0), sheet.answered, sheet.sent - sheet.failed)::BIGINT AS outer_ok,
    CASE WHEN outer_side.ok > 0 THEN outer_side.failed ELSE sheet.failed END::BIGINT AS outer_failed,
    outer_side.failed_s AS outer_failed_s, outer_side.ok_s AS outer_ok_s, done.n::BIGINT AS engine_done,
    CASE WHEN outer_side.ok > 0 THEN outer_side.ref ELSE sheet.source || ':' || sheet.line END AS outer_ref
FROM share, client, engine_side, outer_side, done LEFT JOIN goal ON true LEFT JOIN steady ON true LEFT JOIN sheet ON true
