-- says: the clock of a device that is at work, where it fell most; no row without clocks of a busy device
-- scope: bundle
-- gpu: device index
-- high_mhz: highest clock while it was busy, MHz
-- last_mhz: the last, MHz
-- hot_c: highest temperature of the device, degrees Celsius; NULL = not told
-- ref: where it is lowest
WITH busy AS (
  SELECT coalesce(regexp_extract(m.labels, 'gpu="([^"]*)"', 1), '') AS gpu, m.source, m.line, m.t, m.value FROM metric m
  JOIN gpu_sample s ON s.source = m.source AND (s.line = m.line OR s.t = m.t)
    AND coalesce(s.gpu::VARCHAR, '') = coalesce(regexp_extract(m.labels, 'gpu="([^"]*)"', 1), '')
  WHERE m.name = 'DCGM_FI_DEV_SM_CLOCK'
    -- where nobody tells how busy it is, the reasons that hold its clock back do: the first bit is that of a device with nothing to do
    AND coalesce(
      s.gpu_util >= $clock_at_work,
      EXISTS (FROM metric r WHERE r.name = 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS' AND r.source = m.source AND r.line = m.line AND r.labels IS NOT DISTINCT FROM m.labels AND r.value::BIGINT & 1 = 0)
    )
)
SELECT try_cast(gpu AS INTEGER) AS gpu, max(value) AS high_mhz, arg_max(value, line) AS last_mhz,
       (SELECT max(h.value) FROM metric h WHERE h.name = 'DCGM_FI_DEV_GPU_TEMP' AND h.source = b.source) AS hot_c,
         arg_min(source || ':' || line, value) AS ref
FROM busy b GROUP BY gpu, source HAVING count(*) >= 2 ORDER BY last_mhz / high_mhz LIMIT 1
