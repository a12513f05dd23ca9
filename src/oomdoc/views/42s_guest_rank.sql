-- says: processes that hold memory on several devices: ranks of one server that left a context on another rank's device; no row where every process stays on its own
-- scope: bundle
-- gpu: the device with the most of such guests, by its index (`GPU 0`), or by its UUID where a listing tells nothing else
-- guests: processes on it whose larger part is on another device
-- bytes: what they hold there
-- hosts: devices with such a guest
-- total_bytes: memory of the largest device; NULL = not told
-- ref: where the first of them is listed
WITH held AS (
  -- a listing may be pasted twice
  SELECT source, coalesce('GPU ' || gpu, gpu_uuid) AS gpu, pid, max(used_bytes) AS used, min(line) AS line
  FROM gpu_process
  WHERE coalesce(type, 'C') <> 'G' AND used_bytes > 0
  GROUP BY ALL
), guest AS (
  SELECT a.*
  FROM held a
  WHERE EXISTS (FROM held b WHERE b.source = a.source AND b.pid = a.pid AND b.used >= $guest_elsewhere * a.used)
), seat AS (
  SELECT source, gpu, count(*) AS guests, sum(used) AS bytes, min(line) AS line FROM guest GROUP BY source, gpu
)
SELECT s.gpu, s.guests, s.bytes::BIGINT AS bytes, (SELECT count(DISTINCT gpu) FROM guest g WHERE g.source = s.source) AS hosts,
  (SELECT total_max_bytes FROM device) AS total_bytes, s.source || ':' || s.line AS ref
FROM seat s ORDER BY s.guests DESC, s.bytes DESC, s.source, s.gpu LIMIT 1
