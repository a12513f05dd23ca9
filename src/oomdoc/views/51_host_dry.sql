-- says: memory of a host that is used up step by step until less is left than the next step takes, and then is back at once, or is told no more: who took it ended, or the host stopped answering; no row where that was never seen
-- scope: bundle
-- before_bytes: available before it fell
-- left_bytes: the least that was left
-- step_bytes: the last step
-- back_bytes: available one sample later; NULL = the recording ends there
-- steps: samples in which it fell
-- least_t: when the least was left; NULL where the samples have no time
-- back_t: when it was back
-- ref: where the least stands
WITH told AS (
  -- what is free without the files that the kernel keeps falls to nothing on any host: it counts where nothing else is told
  SELECT *, coalesce(name, '') AS series, regexp_matches(coalesce(name, ''), '(?i)free') AS bare
  FROM process_memory
  WHERE resource = 'host-available' AND bytes >= 0
), sample AS (
  SELECT source, series, line, t, bytes, bytes - lag(bytes) OVER w AS change, lead(bytes) OVER w AS after, lead(t.t) OVER w AS after_t FROM told t
  WHERE NOT (bare AND EXISTS (FROM told o WHERE o.source = t.source AND NOT o.bare)) WINDOW w AS (PARTITION BY source, series ORDER BY line)
), rise AS (
  -- every rise ends a fall
  SELECT *, count(CASE WHEN change > 0 THEN 1 END) OVER (PARTITION BY source, series ORDER BY line) AS fall FROM sample
)
SELECT max(bytes) AS before_bytes, min(bytes) AS left_bytes, -arg_max(change, line) AS step_bytes,
  arg_max(struct_pack(b := after), line).b AS back_bytes, count(*) - 1 AS steps, arg_min(t, bytes) AS least_t,
  arg_max(struct_pack(v := after_t), line).v AS back_t, arg_min(source || ':' || line, bytes) AS ref
FROM rise GROUP BY source, series, fall
HAVING count(*) > $dry_steps AND coalesce(back_bytes >= $dry_back * before_bytes, true)
  AND before_bytes - left_bytes >= $dry_fell * before_bytes
  -- or so little of all that there was that the kernel ends programs for it
  AND (step_bytes >= left_bytes OR (back_bytes IS NULL AND left_bytes <= $dry_at_the_end * before_bytes))
ORDER BY left_bytes LIMIT 1
