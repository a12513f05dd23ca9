-- says: a server failed for want of device memory, the page cache of the host was given up, and the next start of that log came up: host and device are one memory, and files filled it; no row otherwise
-- scope: bundle
-- failed_ref: the last failure before
-- came_up_ref: where the next start came up
-- ref: where the cache was given up
SELECT arg_max(x.source || ':' || x.line, x.line) AS failed_ref, arg_min(m.source || ':' || m.line, m.line) AS came_up_ref,
  min(n.source || ':' || n.line) AS ref
FROM note n JOIN failure_event x ON x.source = n.source AND x.line < n.line AND x.kind IN ('device-oom', 'startup-check') AND x.grade >= 3
  JOIN milestone m ON m.source = n.source AND m.line > n.line AND m.name IN ('serving', 'engine-ready')
WHERE n.topic = 'page-cache-dropped'
  -- who fails again behind it was not cured by it
  AND NOT EXISTS (
    FROM failure_event y
    WHERE y.source = n.source AND y.line > n.line AND y.line < m.line AND y.kind IN ('device-oom', 'startup-check') AND y.grade >= 3
  )
  -- and what served before it, behind the failure, had no need of it
  AND NOT EXISTS (
    FROM milestone u WHERE u.source = n.source AND u.name IN ('serving', 'engine-ready') AND u.line > x.line AND u.line < n.line
  )
HAVING count(*) > 0
