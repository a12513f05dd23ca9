-- says: pods of the server were evicted while its node always had memory to spare: it was short of something else; no row where none was, or nobody recorded what was available
-- scope: bundle
-- left_bytes: the least that was available
-- most_bytes: the most that was available
-- ref: where the first of them is listed
WITH gone AS (
  SELECT source || ':' || line AS ref FROM container_end WHERE reason = 'Evicted' OR last_reason = 'Evicted' ORDER BY source, line LIMIT 1
), free AS (
  SELECT min(bytes) AS least_bytes, max(bytes) AS most_bytes FROM process_memory WHERE resource = 'host-available' AND t IS NOT NULL HAVING count(*) >= $evicted_samples
)
SELECT f.least_bytes AS left_bytes, f.most_bytes, g.ref
FROM gone g, free f
WHERE f.least_bytes >= $evicted_with_room * f.most_bytes AND NOT EXISTS (FROM host WHERE evicted_for_memory)
