-- says: a process that came to the device of another which was listed before it and ends while it is there: where a list is taken again and again; one row per such pair
-- scope: bundle
-- source: the list
-- device: as the list calls it
-- pid: who came
-- own_pid: who was there
-- own_bytes: what that held at last
-- bytes: what who came holds at the other's last listing
-- t: when it is listed first
-- ended_t: when the other is listed last
-- ref: its listing then
WITH listed AS (
  SELECT source, coalesce(gpu::VARCHAR, gpu_uuid) AS device, pid, t, line, used_bytes FROM gpu_process
  WHERE t IS NOT NULL AND pid IS NOT NULL AND used_bytes > 0 AND coalesce(type, 'C') <> 'G' AND coalesce(gpu::VARCHAR, gpu_uuid) IS NOT NULL
), stay AS (
  SELECT source, device, pid, count(*) AS n, min(t) AS from_t, max(t) AS to_t, arg_max(used_bytes, t) AS last_bytes FROM listed GROUP BY ALL
), listing AS (
  SELECT source, max(t) AS to_t FROM listed GROUP BY ALL
)
SELECT a.source, a.device, b.pid, a.pid AS own_pid, a.last_bytes::BIGINT AS own_bytes, l.used_bytes::BIGINT AS bytes, b.from_t AS t, a.to_t AS ended_t, l.source || ':' || l.line AS ref
FROM stay a
JOIN stay b ON b.source = a.source AND b.device = a.device AND b.pid <> a.pid AND b.from_t > a.from_t AND b.to_t >= a.to_t
JOIN listing s ON s.source = a.source AND s.to_t > a.to_t
JOIN listed l ON l.source = b.source AND l.device = b.device AND l.pid = b.pid AND l.t = a.to_t
WHERE a.n >= $listed_before
