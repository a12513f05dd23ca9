-- says: a call of the runtime that was refused for memory without a figure (`CUDA error: out of memory`, `Cuda failure 'out of memory'`), beside what the one device of the bundle held: whether the device can have been what ran out, and whose it was; no row where a figure is told or the device is not
-- scope: incident
-- allocator: who said it
-- used_bytes: most that the device held
-- total_bytes: its size
-- filled: what was left holds no context of a process
-- roomy: no sample shows the device half full, and a process that is listed on it is there and holds a context: the device did not run out
-- processes: listed on it
-- holder_bytes: the largest of them
-- own: the largest of them is the process that failed: by its process id, or since its weights and pool lay on the device and another of that size has no room beside them; NULL = neither is told
-- pinned: the line or the call names page-locked memory of the host
-- ref: where the call failed
WITH caller AS (
  -- NCCL signs as host:pid:thread
  SELECT DISTINCT coalesce(pid, try_cast(regexp_extract(text, '\b\w[\w.-]*:(\d+):\d+ \[\d+\]', 1) AS BIGINT)) AS pid FROM main.oom
), listed AS (
  SELECT pid, max(used_bytes) AS bytes, min(t) AS t FROM gpu_process WHERE coalesce(type, 'C') <> 'G' AND used_bytes > 0 GROUP BY pid
), held AS (
  SELECT count(DISTINCT pid) AS n, max(bytes) AS bytes, arg_max(pid, bytes) AS pid, arg_max(t, bytes) AS t FROM listed
), planned AS (
  -- a container counts its processes for itself, so another number proves nothing; what was there after the failure may have come later
  SELECT e.weights_bytes + e.kv_available_bytes + h.bytes > d.total_bytes AND e.kv_available_bytes > 0 AND coalesce(h.t <= f.t, true) AS fills
  FROM engine e, failure f, device d, held h
  WHERE e.world_size = 1
)
SELECT f.allocator, d.used_max_bytes AS used_bytes, d.total_bytes, d.total_bytes - d.used_max_bytes < $context_and_reserve AS filled,
  d.used_max_bytes <= $half_full * d.total_bytes AND coalesce(h.bytes >= $context_least, false) AS roomy, h.n AS processes,
    h.bytes AS holder_bytes,
  CASE WHEN EXISTS (FROM planned WHERE fills) THEN true
    WHEN EXISTS (FROM caller WHERE pid IS NOT NULL) AND h.n > 0 THEN EXISTS (FROM caller c WHERE c.pid = h.pid) END AS own,
  EXISTS (FROM seen.oom WHERE regexp_matches(text, '(?i)\b(pin|pinned|pinning|page-?locked|cudaHost(Alloc|Register)|cudaMallocHost)\b'))
    OR EXISTS (FROM seen.frame WHERE regexp_matches(function, '(?i)^_?(pin_memory|pinned_\w+|host_register|cudaHost\w+)$')) AS pinned,
  f.oom_ref AS ref
FROM failure f, device d, held h
WHERE f.requested_bytes IS NULL AND f.free_bytes IS NULL
  AND f.allocator IN ('cuda', 'driver', 'nccl', 'cublas', 'cudnn', 'hip', 'device', 'triton') AND d.devices = 1 AND d.total_bytes > 0
  AND NOT EXISTS (FROM note WHERE topic = 'unified-memory')
