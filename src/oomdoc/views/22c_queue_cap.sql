-- says: of servers side by side the one before which requests wait while exactly as many run as ever do, and one that runs more with nobody waiting; no row where no two are told apart, or none is like that
-- scope: bundle
-- name: the server with the queue: as its records name it, else its log
-- cap: the most that it runs
-- queued: its readings with requests waiting
-- capped: of them, those in which as many ran, or all but those that ended with the step
-- samples: its readings
-- waiting: the longest queue
-- peak: its highest KV usage, 0..1
-- other: the one beside it
-- other_running: the most that ran there with nobody waiting
-- ref: the longest queue
WITH stat AS (
  -- a log is one server's; in a sheet of several each has its name
  SELECT source, CASE WHEN count(DISTINCT process) OVER (PARTITION BY source) > 1 THEN coalesce(process, '') ELSE '' END AS server, line, running, waiting, kv_used
  FROM engine_stat
  WHERE running IS NOT NULL AND waiting IS NOT NULL
), one AS (
  SELECT source, server, coalesce(nullif(server, ''), source) AS name, count(*) AS samples, max(running) AS cap, count(*) FILTER (waiting > 0) AS queued,
    max(waiting) AS waiting, max(kv_used) AS peak, max(running) FILTER (waiting = 0) AS alone_running,
    arg_max(source || ':' || line, (waiting, -line::BIGINT)) AS ref
  FROM stat
  GROUP BY source, server
), held AS (
  SELECT o.*, (SELECT count(*) FROM stat s WHERE s.source = o.source AND s.server = o.server AND s.waiting > 0 AND s.running >= $cap_step * o.cap) AS capped
  FROM one o
)
SELECT h.name, h.cap, h.queued, h.capped, h.samples, h.waiting, h.peak, b.name AS other, b.alone_running AS other_running, h.ref
FROM held h JOIN one b ON (b.source, b.server) <> (h.source, h.server) AND b.samples >= $cap_points AND b.alone_running > h.cap
WHERE h.queued >= $cap_points AND h.queued >= $cap_often * h.samples AND h.capped >= $cap_always * h.queued AND h.waiting >= $roomy_queue AND h.cap > 1
ORDER BY h.waiting DESC, b.alone_running DESC, h.name LIMIT 1
