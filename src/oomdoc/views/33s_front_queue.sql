-- says: the most requests that waited before the engines, by a sheet of a router, a gateway or a deployment; no row where none counts them
-- scope: incident
-- waiting: how many
-- held: the front end says so, a long queue, while the engines behind it run few, nobody waits there and their pools have room: it holds back what they would take
-- ref: where
SELECT value AS waiting,
  regexp_matches(lower(name), 'epp|gateway|router|flow|proxy|ingress|balancer|dispatch|envoy|front') AND value >= $front_queue_long
    AND (coalesce((
      SELECT k.queued = 0 AND k.peak < $pool_roomy AND coalesce(k.preemptions, 0) = 0 AND k.samples >= $roomy_points
        AND k.running_max BETWEEN 1 AND $few_of_cap * coalesce(e.max_num_seqs, $cap_by_default)
      FROM kv_pressure k, engine e
    ), false)
    -- or however full they were at a time: nobody behind it was ever seen to wait
    OR EXISTS (FROM unharmed)) AS held, source || ':' || line AS ref
FROM trial_figure
WHERE regexp_matches(lower(name), 'queued|queue_?(len|size|depth)|^queue$|waiting|backlog|pending')
  AND NOT regexp_matches(lower(name), '_s$|_ms$|second|time|latency|ttft|max|limit|cap')
ORDER BY held DESC, value DESC, source, line
LIMIT 1
