-- says: a device whose clock fell while the pool had room, whose requests then got so much fewer tokens each, and a pool that filled only afterwards: requests that take longer are more at a time; no row where it was not so, or clocks have no time
-- scope: incident
-- gpu: device index
-- high_mhz: highest clock while it was busy, MHz
-- last_mhz: the last, MHz
-- before_rate: tokens a second that one running request got before the clock fell, median
-- after_rate: the same from there until the pool was full
-- share: KV usage in that stretch, median, 0..1
-- minutes: from the fall to the full pool
-- ref: where the clock had fallen
WITH busy AS (
  SELECT coalesce(regexp_extract(m.labels, 'gpu="([^"]*)"', 1), '') AS gpu, m.source, m.line, m.t, m.value FROM metric m
  JOIN gpu_sample s ON s.source = m.source AND (s.line = m.line OR s.t = m.t)
    AND coalesce(s.gpu::VARCHAR, '') = coalesce(regexp_extract(m.labels, 'gpu="([^"]*)"', 1), '')
  WHERE m.name = 'DCGM_FI_DEV_SM_CLOCK' AND s.gpu_util >= $clock_at_work AND m.t IS NOT NULL
), seen_low AS (
  SELECT b.gpu, c.high_mhz, c.last_mhz, min(b.t) AS t, arg_min(b.source, b.t) AS source, arg_min(b.source || ':' || b.line, b.t) AS ref
  FROM busy b JOIN clock c ON coalesce(c.gpu::VARCHAR, '') = b.gpu AND c.last_mhz <= $clock_fell * c.high_mhz
  WHERE b.value <= $clock_fell * c.high_mhz
  GROUP BY b.gpu, c.high_mhz, c.last_mhz
), fell AS (
  -- it fell at some time since the look before, which found it high
  SELECT l.gpu, l.high_mhz, l.last_mhz, l.ref, any_value(l.t) AS found_t, coalesce(max(g.t), any_value(l.t)) AS since_t
  FROM seen_low l LEFT JOIN gpu_sample g ON g.source = l.source AND coalesce(g.gpu::VARCHAR, '') = l.gpu AND g.t < l.t
  GROUP BY l.gpu, l.high_mhz, l.last_mhz, l.ref
), filled AS (
  -- a pool that was full at the look that found it slow filled since the look before
  SELECT f.gpu, f.high_mhz, f.last_mhz, f.ref, min(x.t) AS full_t, CASE WHEN min(x.t) < any_value(f.found_t) THEN any_value(f.since_t) ELSE any_value(f.found_t) END AS t
  FROM fell f JOIN seen.engine_stat x ON x.t > f.since_t AND x.kv_used >= $pool_pinned
  GROUP BY f.gpu, f.high_mhz, f.last_mhz, f.ref
), course AS (
  SELECT f.gpu, f.high_mhz, f.last_mhz, f.ref, (f.full_t - f.t) / 60 AS minutes,
    median(x.generation_tokens_per_s / x.running) FILTER (x.t < f.t) AS before_rate,
    -- the last readings before the pool was full are of the slow card, whenever since the look before it became slow
    median(x.generation_tokens_per_s / x.running) FILTER (x.t >= f.t AND x.nth <= $rate_points) AS after_rate, median(x.kv_used) FILTER (x.t >= f.t) AS share,
    count(*) FILTER (x.t < f.t) AS before, count(*) FILTER (x.t >= f.t) AS after,
    max(x.kv_used) FILTER (x.t < f.t) AS before_peak
  FROM filled f JOIN (
    SELECT *, row_number() OVER (ORDER BY t DESC) AS nth FROM seen.engine_stat
    WHERE running > 0 AND generation_tokens_per_s > 0 AND t < (SELECT min(full_t) FROM filled)
  ) x ON x.t < f.full_t
  GROUP BY f.gpu, f.high_mhz, f.last_mhz, f.ref, f.full_t, f.t
)
SELECT try_cast(gpu AS INTEGER) AS gpu, high_mhz, last_mhz, before_rate, after_rate, share, minutes, ref
FROM course
-- a pool that had been full before needs no slower card
WHERE before >= $rate_points AND after >= $rate_points AND after_rate <= $clock_fell * before_rate AND before_peak < $pool_crowded
ORDER BY minutes LIMIT 1
