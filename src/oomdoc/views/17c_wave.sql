-- says: whether the memory of a device comes and goes between the same two levels in every part of a recording; no row where no recording of a device is long enough or nothing comes and goes
-- scope: bundle
-- gpu: the device whose memory comes and goes most
-- alike: floor and top are the same in all parts, and nothing is added to either
-- floor_bytes: the lowest reading of the last part
-- top_bytes: the highest reading of the last part
-- hours: how long the recording is
-- ref: its last reading
WITH swing AS (
  SELECT series, source, gpu, count(*) AS parts, min(low) AS floor, max(high) AS top, max(low) - min(low) AS floor_spread,
    max(high) - min(high) AS top_spread, bool_and(high - low >= $wave_share * high) AS swings,
         arg_max(low, part) AS last_low, arg_max(high, part) AS last_high, max(last_line) AS last_line, any_value(seconds) AS seconds
  FROM device_part GROUP BY series, source, gpu
)
SELECT gpu,
  floor_spread <= greatest($level_share * top, $level_bytes) AND top_spread <= greatest($level_share * top, $level_bytes) AS alike,
  last_low::BIGINT AS floor_bytes, last_high::BIGINT AS top_bytes,
       seconds / 3600 AS hours, source || ':' || last_line AS ref
FROM swing WHERE parts = 6 AND swings AND top > 0
ORDER BY top - floor DESC LIMIT 1
