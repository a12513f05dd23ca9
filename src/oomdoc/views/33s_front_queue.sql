-- says: the most requests that waited before the engines, by a sheet of a router, a gateway or a deployment; no row where none counts them
-- scope: bundle
-- waiting: how many
-- ref: where
SELECT value AS waiting, source || ':' || line AS ref
FROM trial_figure
WHERE regexp_matches(lower(name), 'queued|queue_?(len|size|depth)|^queue$|waiting|backlog|pending')
  AND NOT regexp_matches(lower(name), '_s$|_ms$|second|time|latency|ttft|max|limit|cap')
ORDER BY value DESC, source, line
LIMIT 1
