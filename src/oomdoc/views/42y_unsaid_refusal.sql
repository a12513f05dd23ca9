-- says: a start that ended behind the step that sizes its KV cache, where the log does not say why; no row where it came up, failed in words, or may still be under way
-- scope: incident
-- ref: what it had left for KV
-- the start ends there: somebody says so, its container ended with a status of its own, or the log shows one such start after the other
SELECT coalesce(e.kv_available_ref, e.kv_pool_ref) AS ref
FROM engine e, failure f
WHERE f.ooms = 0 AND f.check_name IS NULL AND NOT e.served AND e.last_milestone IN ('kv-available', 'kv-blocks', 'kv-sized')
  AND (
    f.failed OR (f.failed IS NULL AND EXISTS (FROM note WHERE topic = 'failure-told'))
    OR EXISTS (FROM container WHERE exit_code BETWEEN 1 AND 127) OR EXISTS (FROM workload WHERE clean_starts >= $starts_in_a_row)
  )
