-- says: how full the shared memory of the server was when somebody looked; no row where nobody tells both its size and what was in it
-- scope: bundle
-- size_bytes: as in `shm_mount`
-- most_bytes: the most that was in it
-- looks: how often somebody looked
-- ref: the look at which it was fullest
SELECT z.size_bytes, max(l.bytes)::BIGINT AS most_bytes, count(*) AS looks, arg_max(l.source || ':' || l.line, l.bytes) AS ref
FROM (
  SELECT source, line, bytes FROM process_memory WHERE resource = 'shm'
  UNION ALL SELECT source, line, value FROM note WHERE topic = 'shm-used'
) l,
shm_mount z
WHERE l.bytes <= z.size_bytes
GROUP BY z.size_bytes
