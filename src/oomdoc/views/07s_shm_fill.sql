-- says: how full the shared memory of the server was when somebody looked; no row where nobody tells both its size and what was in it
-- scope: bundle
-- size_bytes: of the smallest mount that is told: the host has one of its own, larger than a container's; where one text tells of several and nothing of the server speaks of shared memory, nobody knows which is its own
-- most_bytes: the most that was in it
-- looks: how often somebody looked
-- ref: the look at which it was fullest
SELECT z.size::BIGINT AS size_bytes, max(l.bytes)::BIGINT AS most_bytes, count(*) AS looks, arg_max(l.source || ':' || l.line, l.bytes) AS ref
FROM (
  SELECT source, line, bytes FROM process_memory WHERE resource = 'shm'
  UNION ALL SELECT source, line, value FROM note WHERE topic = 'shm-used'
) l,
(
  SELECT min(n.value) AS size FROM note n
  WHERE n.topic = 'shm-size' AND n.value > 0
    AND ((SELECT shm_events FROM host) > 0 OR NOT EXISTS (FROM note m WHERE m.topic = 'shm-size' AND m.source = n.source AND m.value > n.value))
) z
WHERE l.bytes <= z.size
GROUP BY z.size
