-- says: the device that is at work and never runs as fast as its like beside it, however hot they are; no row where none does
-- scope: bundle
-- gpu: its index
-- mhz: the fastest that it ran, MHz
-- others_mhz: the median of the fastest of the others, MHz
-- others: how many
-- ref: where it is slowest
WITH one AS (
  -- devices of one source are of one host; those of one size are of one make
  SELECT b.source, b.gpu, max(b.value) AS mhz, arg_min(b.source || ':' || b.line, b.value) AS ref, any_value(d.total_bytes) AS size
  FROM (
    SELECT source, line, try_cast(regexp_extract(labels, 'gpu="([^"]*)"', 1) AS INTEGER) AS gpu, value FROM metric WHERE name = 'DCGM_FI_DEV_SM_CLOCK'
  ) b
  JOIN device_series d ON d.source = b.source AND d.gpu = b.gpu
  JOIN (SELECT source, gpu, avg(gpu_util) AS busy FROM gpu_sample WHERE gpu_util IS NOT NULL GROUP BY ALL) u ON u.source = b.source AND u.gpu = b.gpu
  WHERE u.busy >= $clock_at_work
  GROUP BY b.source, b.gpu
)
SELECT s.gpu, s.mhz, median(o.mhz) AS others_mhz, count(*) AS others, s.ref
FROM one s JOIN one o ON o.source = s.source AND o.gpu <> s.gpu AND o.size IS NOT DISTINCT FROM s.size
GROUP BY s.source, s.gpu, s.mhz, s.ref
HAVING s.mhz <= $clock_beside * median(o.mhz)
ORDER BY s.mhz / median(o.mhz), s.ref
LIMIT 1
