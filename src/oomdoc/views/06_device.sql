-- says: the accelerators that the bundle shows, all sources together; where one source shows several hosts, those of the host whose devices hold the most, or of all where a start asks for more than one has
-- scope: bundle
-- devices: devices seen (nvidia-smi rows, device lists, statements, Kubernetes limits), no more than the server's pods were given where their limits are told; NULL = nobody says
-- devices_ref: where
-- name: product name of the first
-- total_bytes: memory of the smallest
-- total_max_bytes: memory of the largest
-- used_max_bytes: memory in use on the fullest, at its last sample
-- used_min_bytes: memory in use on the emptiest, at its last sample
-- idle_devices: devices that never had 5 % in use, while another reached 50 % or more (a collector runs on after a crash); NULL where all are empty, which was not while the engine ran; of a pod's at least one is at work
-- idle_ref: where
-- mig_profile: MIG profile, where one is named
-- mig_ref: where
-- processes: most processes on one device
-- foreign_processes: processes on a device that are no part of the server, by name; NULL = no list
-- foreign_bytes: what they hold
-- foreign_ref: where
-- taken_devices: devices on which nobody but such processes is ever listed, and which they hold: no place for the server; NULL = no list, or one of a node of which the server was given a part
-- engines_on_device: processes of engines on one device that belong to different servers, as far as names tell
-- samples: samples of nvidia-smi
-- used_spread: (fullest - emptiest) / total among devices that are in use
-- unified_full: CPU and GPU share one memory and it was full; false = a seventh of it was left; NULL = in between, or memory of its own
-- unified_ref: where a text says that they share it
WITH sampled AS (
  -- where no size is told a device is at least as large as the fullest of them, and that one is at work once it holds what no context does
  -- readings that number no device are of the one that is numbered, where there is one alone
  SELECT host, coalesce(gpu, one) AS gpu, arg_max(used_bytes, source) AS used, max(peak_bytes) AS peak, max(total_bytes) AS total, min(coalesce(total_min_bytes, total_bytes)) AS total_min,
    coalesce(max(total_bytes), CASE WHEN max(max(peak_bytes)) OVER (PARTITION BY host) >= $at_work_bytes THEN max(max(peak_bytes)) OVER (PARTITION BY host) END) AS size,
    min(source || ':' || last_line) AS ref, sum(samples) AS samples
  FROM (SELECT *, CASE WHEN min(gpu) OVER (PARTITION BY host) = max(gpu) OVER (PARTITION BY host) THEN min(gpu) OVER (PARTITION BY host) END AS one FROM device_series)
  GROUP BY host, coalesce(gpu, one)
), asked AS (
  -- what one start asked for: ranks that no host has cards for lie on several
  SELECT max(ranks) AS ranks FROM (
    SELECT max(try_cast(value AS INTEGER)) FILTER (flag = 'tensor_parallel_size') * coalesce(max(try_cast(value AS INTEGER)) FILTER (flag = 'pipeline_parallel_size'), 1) AS ranks
    FROM engine_flag GROUP BY source
  )
), of_host AS (
  SELECT count(*) + count(CASE WHEN total_min < total THEN 1 END) AS n, min(total_min) AS total, max(total) AS total_max, max(used) AS used_max, min(used) AS used_min, min(ref) AS ref,
    sum(samples) AS samples,
         -- ranks are as large as the smallest of their cards: a card of another size beside those is no place for one more
         count(*) FILTER (peak < $device_idle * size AND alike AND NOT given) AS idle, max(peak / size) FILTER (alike) AS fullest,
           min(ref) FILTER (peak < $device_idle * size AND alike AND NOT given) AS idle_ref,
         (max(used) FILTER (used > $device_in_use * total) - min(used) FILTER (used > $device_in_use * total)) / max(total) AS used_spread
  -- the one card that the server was put on is no place for one more, whoever has stopped it
  FROM (SELECT *, coalesce($cards_alike * total >= max(total) OVER (PARTITION BY place), true) AS alike, coalesce(gpu::VARCHAR IN (SELECT device FROM own_device) AND (SELECT count(*) FROM own_device) = 1, false) AS given
    FROM (SELECT *, CASE WHEN (SELECT ranks FROM asked) > max(n) OVER () THEN '' ELSE coalesce(host, '') END AS place FROM (SELECT *, count(*) OVER (PARTITION BY host) AS n FROM sampled)))
  GROUP BY place
), sample_sum AS (
  -- a card of another host is no place for one more: of several hosts the one whose devices hold the most
  SELECT coalesce(h.n, 0) AS n, h.* EXCLUDE (n)
  FROM (SELECT 1) LEFT JOIN (SELECT * FROM of_host ORDER BY fullest DESC NULLS LAST, used_max DESC NULLS LAST, ref LIMIT 1) h ON true
), listed AS (
  -- one text that numbers its devices and says in words how many there are speaks of the same ones twice
  SELECT source,
    greatest(
      sum(coalesce(count, 1)) FILTER (mig_profile IS NULL AND gpu IS NOT NULL),
      sum(coalesce(count, 1)) FILTER (mig_profile IS NULL AND gpu IS NULL)
    ) AS n, min(source || ':' || line) AS ref
  FROM (
    SELECT source, gpu, max(count) AS count, max(mig_profile) AS mig_profile, min(line) AS line
    FROM gpu_device
    -- a DGX Spark is a machine with one GB10: both names in one text are of one device
    GROUP BY source, gpu, CASE WHEN gpu IS NULL AND NOT regexp_matches(coalesce(name, ''), '(?i)DGX Spark|GB10') THEN line END) GROUP BY source
), described AS (
  SELECT (SELECT max(n) FROM listed) AS n, (SELECT max_by(ref, n) FROM listed) AS ref,
    arg_min(name, line) FILTER (name IS NOT NULL) AS name, min(total_bytes) AS total, max(total_bytes) AS total_max,
         -- an exporter lists a card's instances scrape after scrape: those of the last
         arg_max(mig_profile, line) FILTER (mig_profile IS NOT NULL) AS mig_profile,
         arg_max(source || ':' || line, line) FILTER (mig_profile IS NOT NULL) AS mig_ref FROM gpu_device
), granted AS (
  SELECT max(gpus) AS n, max(mig_profile) AS mig_profile, min(source || ':' || line) AS ref,
    min(source || ':' || line) FILTER (mig_profile IS NOT NULL) AS mig_ref,
    -- what its pods were given; an exporter shows the whole node, whose other cards they do not see
    (SELECT sum(gpus) FROM (SELECT max(gpus) AS gpus FROM container WHERE serves AND gpus > 0 AND pod IS NOT NULL GROUP BY pod, name)) AS theirs
  FROM container
), failed_on AS (
  -- a node has instances of several sizes: the server's is the one whose size the allocator named
  SELECT arg_min(g.mig_profile, g.miss) AS mig_profile, arg_min(g.ref, g.miss) AS mig_ref
  FROM (
    SELECT mig_profile, source || ':' || line AS ref,
      abs(1 - $slice_gib * try_cast(regexp_extract(mig_profile, '(\d+)gb', 1) AS DOUBLE) / (SELECT max(total_bytes) FROM oom)) AS miss
    FROM gpu_device
  ) g
  WHERE g.miss <= $slice_alike
), process AS (
  SELECT device, host, coalesce(t, 0) AS t, source, count(DISTINCT pid) AS n, count(DISTINCT pid) FILTER (foreigner AND NOT elsewhere) AS foreigners,
    count(DISTINCT pid) FILTER (foreigner) AS others, sum(used_bytes) FILTER (foreigner) AS other_bytes,
    sum(used_bytes) FILTER (foreigner AND NOT elsewhere) AS foreign_bytes,
         min(source || ':' || line) FILTER (foreigner AND NOT elsewhere) AS foreign_ref, count(DISTINCT pid) FILTER (name ILIKE '%EngineCore%') AS engines
  FROM listed_process
  GROUP BY ALL
), process_max AS (
  SELECT max(n) AS n, max(foreigners) AS foreigners, max(foreign_bytes) AS foreign_bytes, min(foreign_ref) AS foreign_ref,
    max(engines) AS engines,
    (SELECT count(*) FROM (SELECT device FROM process WHERE device IS NOT NULL GROUP BY device, host HAVING bool_and(n = others) AND max(other_bytes) >= $at_work_bytes)) AS taken
  FROM process
)
SELECT nullif(least(greatest(s.n, coalesce(d.n, 0), coalesce(g.n, 0)), g.theirs), 0)::INTEGER AS devices,
  CASE WHEN s.n > 0 THEN s.ref WHEN d.n > 0 THEN d.ref ELSE g.ref END AS devices_ref, d.name,
  -- what holds the instances is larger than the one of the server
  -- and of several instances that are listed the server's is the one as large as its profile
  CASE WHEN coalesce(o.mig_profile, g.mig_profile) IS NOT NULL
      THEN CASE WHEN least(s.total, d.total) < (1 - $slice_alike) * slice.total THEN slice.total ELSE least(slice.total, s.total, d.total) END
    ELSE coalesce(s.total, d.total, slice.total) END::BIGINT AS total_bytes, coalesce(s.total_max, d.total_max)::BIGINT AS total_max_bytes,
    s.used_max::BIGINT AS used_max_bytes, s.used_min::BIGINT AS used_min_bytes,
  CASE WHEN s.idle < s.n THEN CASE WHEN s.fullest >= $device_at_work THEN least(s.idle, coalesce(g.theirs - 1, s.idle)) ELSE 0 END END AS idle_devices, s.idle_ref,
    coalesce(o.mig_profile, g.mig_profile, d.mig_profile) AS mig_profile, coalesce(o.mig_ref, g.mig_ref, d.mig_ref) AS mig_ref,
  p.n AS processes, p.foreigners AS foreign_processes, p.foreign_bytes::BIGINT AS foreign_bytes, p.foreign_ref,
    CASE WHEN p.n > 0 AND g.theirs IS NULL THEN p.taken END AS taken_devices,
    p.engines AS engines_on_device,
  s.samples::BIGINT AS samples, s.used_spread,
  CASE WHEN shared.ref IS NOT NULL
    THEN CASE WHEN s.used_max >= $unified_full * s.total THEN true WHEN s.used_max < $unified_room * s.total THEN false END
    END AS unified_full, shared.ref AS unified_ref
FROM sample_sum s, described d, granted g, failed_on o, process_max p, (
  -- GiB of a slice by the GB in its profile, 0.91 to 0.99 (`physics.gpus`): 4.75 for 1g.5gb of an A100, 16.0 for 1g.18gb of an H200
  SELECT coalesce(
      CASE WHEN o2.mig_profile IS NOT NULL THEN (SELECT max(total_bytes) FROM oom) END,
      $slice_gib * try_cast(regexp_extract(coalesce(g2.mig_profile, d2.mig_profile), '(\d+)gb', 1) AS DOUBLE)
    ) AS total
  FROM described d2, granted g2, failed_on o2) slice,
  (SELECT min(source || ':' || line) AS ref FROM note WHERE topic = 'unified-memory') shared
