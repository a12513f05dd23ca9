-- says: how often a readiness probe failed; no row where no event tells of one
-- scope: incident
-- n: times, of the event that counts most
-- ref: the line of that event
SELECT max(coalesce(count, 1)) AS n, max_by(source || ':' || line, coalesce(count, 1)) AS ref
FROM cluster_event
WHERE reason = 'Unhealthy' AND message ILIKE '%readiness%'
HAVING count(*) > 0
