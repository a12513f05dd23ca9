-- says: how large the shared memory of the server is; no row where nobody says
-- scope: bundle
-- size_bytes: of the smallest mount that is told: the host has one of its own, larger than a container's; where one text tells of several and nothing of the server speaks of shared memory, nobody knows which is its own, and the largest of them bounds it
SELECT min(n.value)::BIGINT AS size_bytes FROM note n
WHERE n.topic = 'shm-size' AND n.value > 0
  AND ((SELECT shm_events FROM host) > 0 OR NOT EXISTS (FROM note m WHERE m.topic = 'shm-size' AND m.source = n.source AND m.value > n.value))
HAVING min(n.value) IS NOT NULL
