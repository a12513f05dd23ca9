-- says: whether the memory of a device comes and goes between the same two levels in every part of a recording; no row where no recording of a device is long enough or nothing comes and goes
-- scope: bundle
-- gpu: the device whose memory comes and goes most
-- alike: floor and top are the same in all parts, and nothing is added to either
-- floor_bytes: the lowest reading of the last part
-- top_bytes: the highest reading of the last part
-- floor_rise_bytes: how much higher the floor of the last part lies than that of the first
-- top_rise_bytes: likewise the top
-- hours: how long the recording is
-- ref: its last reading
WITH part AS (
  SELECT d.series, least(5, floor((g.t - d.from_t) / d.seconds * 6))::INTEGER AS part, min(g.used_bytes) AS low, max(g.used_bytes) AS high
  FROM gpu_sample g JOIN device_series d ON d.source = g.source AND d.gpu IS NOT DISTINCT FROM g.gpu
  WHERE d.timed >= $device_samples AND d.seconds >= $trend_s AND g.used_bytes IS NOT NULL GROUP BY ALL
), wave AS (
  SELECT series, count(*) AS parts, min(low) AS floor, max(high) AS top, max(low) - min(low) AS floor_spread, max(high) - min(high) AS top_spread, bool_and(high - low >= $wave_share * high) AS swings,
         arg_max(low, part) AS last_low, arg_max(high, part) AS last_high, arg_max(low, part) - arg_min(low, part) AS floor_rise, arg_max(high, part) - arg_min(high, part) AS top_rise
  FROM part GROUP BY series
)
SELECT d.gpu, floor_spread <= greatest($level_share * top, $level_bytes) AND top_spread <= greatest($level_share * top, $level_bytes) AS alike, last_low AS floor_bytes, last_high AS top_bytes,
       floor_rise AS floor_rise_bytes, top_rise AS top_rise_bytes, d.seconds / 3600 AS hours, d.source || ':' || d.last_line AS ref
FROM wave w JOIN device_series d USING (series) WHERE parts = 6 AND swings
ORDER BY top - floor DESC LIMIT 1
