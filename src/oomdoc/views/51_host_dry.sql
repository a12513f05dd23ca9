-- says: memory of a host that is used up step by step until less is left than the next step takes, and then is back at once: who took it ended, and began anew or did not; no row where that was never seen
-- scope: bundle
-- before_bytes: available before it fell
-- left_bytes: the least that was left
-- step_bytes: the last step
-- back_bytes: available one sample later
-- steps: samples in which it fell
-- ref: where the least stands
WITH sample AS (
  SELECT source, line, bytes, bytes - lag(bytes) OVER w AS change, lead(bytes) OVER w AS after FROM process_memory
  WHERE resource = 'host-available' AND bytes >= 0 WINDOW w AS (PARTITION BY source ORDER BY line)
), rise AS (
  -- every rise ends a fall
  SELECT *, count(CASE WHEN change > 0 THEN 1 END) OVER (PARTITION BY source ORDER BY line) AS fall FROM sample
)
SELECT max(bytes) AS before_bytes, min(bytes) AS left_bytes, -arg_min(change, line) FILTER (after > bytes) AS step_bytes, arg_min(after, line) FILTER (after > bytes) AS back_bytes, count(*) - 1 AS steps, arg_min(source || ':' || line, bytes) AS ref
FROM rise GROUP BY source, fall
HAVING count(*) > $dry_steps AND back_bytes >= $dry_back * before_bytes AND before_bytes - left_bytes >= $dry_fell * before_bytes AND step_bytes >= left_bytes
ORDER BY left_bytes LIMIT 1
