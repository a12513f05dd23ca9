-- says: how full the shared memory of the server was when somebody looked; no row where nobody tells both its size and what was in it
-- scope: bundle
-- size_bytes: as in `shm_mount`
-- most_bytes: the most that was in it
-- looks: how often somebody looked
-- gone: how often it was full at one look and all but empty at the next: who had filled it had ended
-- ref: the look at which it was fullest
SELECT z.size_bytes, max(l.bytes)::BIGINT AS most_bytes, count(*) AS looks,
  count(*) FILTER (l.bytes >= $shm_filled * z.size_bytes AND l.after <= $container_gone * l.bytes) AS gone, arg_max(l.source || ':' || l.line, l.bytes) AS ref
FROM (
  -- how often it was started is told beside it and makes no other mount of it
  SELECT source, line, bytes,
    lead(bytes) OVER (PARTITION BY source, name, regexp_replace(variant, '\S*restarts? \d+', '') ORDER BY coalesce(t, elapsed_s, step), line) AS after
  FROM process_memory WHERE resource = 'shm'
  UNION ALL SELECT source, line, value, NULL FROM note WHERE topic = 'shm-used'
) l,
shm_mount z
WHERE l.bytes <= z.size_bytes
GROUP BY z.size_bytes
