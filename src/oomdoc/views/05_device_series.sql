-- says: one row per device and source of nvidia-smi samples: what `device` and `memory_trend` need of the many rows, in one pass
-- scope: bundle
-- series: number of the row
-- source: where the samples stand
-- host: the host of these samples where one source shows several, but for the first of them; NULL = any other source
-- gpu: device index
-- samples: how many
-- last_line: the last of them
-- used_bytes: memory in use at the last sample that tells
-- peak_bytes: highest memory in use
-- total_bytes: memory of the device
-- total_min_bytes: the least that was told of it: an index with two sizes is two devices, of two hosts
-- timed: samples with a time
-- from_t: time of the first
-- seconds: from the first to the last
WITH series AS (
  SELECT source, gpu, count(*) AS samples, max(line) AS last_line, max(line) FILTER (used_bytes IS NOT NULL) AS used_line,
    max(used_bytes) AS peak_bytes, max(total_bytes) AS total_bytes, min(total_bytes) AS total_min_bytes,
         count(t) AS timed, min(t) AS from_t, max(t) - min(t) AS seconds
  FROM gpu_sample GROUP BY source, gpu
), used AS (
  -- looked up by its line, which costs 2 ms for 2 million rows; arg_max in the pass above would double its price
  SELECT g.source, g.gpu, any_value(g.used_bytes) AS used_bytes
  FROM gpu_sample g
  JOIN series s ON g.line = s.used_line AND g.source = s.source AND g.gpu IS NOT DISTINCT FROM s.gpu
  WHERE g.used_bytes IS NOT NULL GROUP BY g.source, g.gpu
)
SELECT row_number() OVER (ORDER BY s.source, s.gpu) AS series, s.source, nullif(regexp_extract(s.source, '\[([\w.-]+)\]$', 1), '') AS host, s.gpu, samples, last_line, used_bytes, peak_bytes, total_bytes, total_min_bytes,
  timed, from_t, seconds
FROM series s LEFT JOIN used u ON u.source = s.source AND u.gpu IS NOT DISTINCT FROM s.gpu
