-- says: what the model should weigh by its files, else by its name and format, against what was loaded and what the device holds
-- scope: incident
-- name: model path or name
-- params: parameters by the name (7B, 8x7B, 0.6B); NULL = the name does not tell
-- bytes_per_param: by format in the name, quantization flag or dtype; 2 where nothing speaks
-- quantised: the name or a flag says that the weights are quantised
-- expected_bytes: what its files take, else params x bytes_per_param, all ranks; files of 16 bits that are made narrower while they are loaded count as the name and the format say
-- sum: how that comes about, in words between brackets; NULL = nothing is expected
-- files_ref: where its files are listed; NULL = the size is the name's
-- expected_rank_bytes: per rank, on its device
-- loaded_bytes: as logged, per rank
-- loaded_share: loaded / device total
-- expected_share: expected per rank / device total
-- total_bytes: device total
-- wider_than_meant: what is held, or what the files take, is at least 1.5 times what the format should take
-- world_size: ranks that share the weights
-- fits_sharded: the weights, which take half a device where they are at least, would fit if they were spread over all devices seen that nobody else has taken
WITH text AS (
  SELECT coalesce(model, '') AS name,
    -- the last part of a path, unless it tells no size: `.../models--x--Chat-70B/snapshots/<hash>`
    CASE WHEN regexp_matches(model, '(?i)(?:^|[-_/. A-Za-z])\d+(?:\.\d+)?b(?:[-_. ][^/]*)?$') THEN regexp_extract(model, '[^/]*$')
      ELSE coalesce(model, '') END AS told,
    concat_ws(' ', model, quantization, dtype) AS words, e.* EXCLUDE (model) FROM engine e
), parsed AS (
  SELECT *,
    try_cast(
      regexp_extract(told, '(?i)(?:^|[-_/. ])(\d+)x(\d+(?:\.\d+)?)b(?:[-_. /]|$)', 1) AS DOUBLE
    ) * try_cast(regexp_extract(told, '(?i)(?:^|[-_/. ])(\d+)x(\d+(?:\.\d+)?)b(?:[-_. /]|$)', 2) AS DOUBLE) * 0.83 AS moe,
         try_cast(regexp_extract(told, '(?i)(?:^|[-_/. A-Za-z])(\d+(?:\.\d+)?)b(?:[-_. /]|$)', 1) AS DOUBLE) AS dense,
    -- a format is a word of its own: a folder of somebody whose name holds `bnb` tells nothing
    CASE WHEN regexp_matches(words, '(?i)(?:^|[^a-z0-9])(?:nv|mx)?fp4(?:[^a-z0-9]|$)') THEN 0.58
      WHEN regexp_matches(
        words, '(?i)(?:^|[^a-z0-9])(?:awq|gptq|u?int4|w4a\w*|4[-_]?bits?|nf4|i?q4|bnb|bitsandbytes)\d*(?:[^a-z0-9]|$)'
      ) THEN 0.56
        WHEN regexp_matches(
          words, '(?i)(?:^|[^a-z0-9])(?:fp8|u?int8|w8a\w*|8[-_]?bits?|q8|eetq)\d*(?:[^a-z0-9]|$)'
        ) THEN 1.05
           WHEN regexp_matches(coalesce(dtype, ''), '(?i)^(torch\.)?(float|float32|fp32)$') THEN 4.0 ELSE 2.0 END AS bytes_per_param
  FROM text
), sized AS (
  SELECT p.*, coalesce(moe, dense) * 1e9 AS params, w.ref, w.same, w.bytes AS files,
    coalesce(moe, dense) * 1e9 * bytes_per_param AS by_name,
    -- formats that an engine makes of wider files while it loads them
    lower(coalesce(quantization, '')) IN ('fp8', 'bitsandbytes', 'experts_int8', 'torchao', 'rtn', 'inc', 'fp_quant', 'mxfp8', 'fbgemm_fp8') AS narrowed,
    coalesce(p.total_bytes, f.total_bytes, d.total_bytes) AS device_bytes, d.devices - coalesce(d.taken_devices, 0) AS devices,
    f.live_bytes, f.phase, coalesce(p.cpu_offload_gib, 0) * 1073741824 AS offloaded
  FROM parsed p CROSS JOIN failure f CROSS JOIN device d LEFT JOIN weights_on_disk w ON w.bytes > 0
), sourced AS (
  -- a folder of another name counts where the model's own name tells no size; files of 16 bits that are loaded as other ones take what the name says
  SELECT *, CASE WHEN files IS NULL OR (NOT same AND by_name > 0) THEN by_name WHEN narrowed THEN CASE WHEN by_name > 0 THEN least(files, by_name) END
    WHEN bytes_per_param = 4 THEN CASE WHEN by_name > 0 THEN greatest(files, by_name) END ELSE files END AS bytes
  FROM sized
), expected AS (
  SELECT *, CASE WHEN bytes = files THEN ref END AS files_ref FROM sourced
)
SELECT nullif(name, '') AS name, params, bytes_per_param, bytes_per_param < 2 AS quantised, bytes AS expected_bytes,
  -- what is offloaded lies on the host
  bytes / world_size - offloaded AS expected_rank_bytes, weights_bytes AS loaded_bytes,
  weights_bytes / device_bytes AS loaded_share, (bytes / world_size - offloaded) / device_bytes AS expected_share,
    device_bytes AS total_bytes,
  CASE WHEN bytes_per_param < 2 THEN
    greatest(
      coalesce(weights_bytes, 0), CASE WHEN phase = 'load' THEN coalesce(live_bytes, 0) ELSE 0 END,
      CASE WHEN weights_bytes IS NULL AND files_ref IS NOT NULL THEN files / world_size END
    ) > $wider_format * by_name / world_size END AS wider_than_meant, world_size,
  CASE WHEN devices > world_size
    -- where the name tells no size and no list does, its configuration, the catalogue or the loader itself may
    THEN coalesce(bytes, (SELECT max(low) FROM expected_figure WHERE name = 'weights_bytes') * world_size, (SELECT told_weights_bytes FROM failure), live_bytes * world_size * 1.1) / devices < $weights_at_most * device_bytes
      AND coalesce(bytes / world_size >= $weights_at_least * device_bytes, true) END AS fits_sharded,
  CASE WHEN files_ref IS NOT NULL THEN printf(' (%.3g GB of files)', (files / 1e9)::DOUBLE)
    ELSE printf(' (%.3g billion parameters x %.2g bytes)', (params / 1e9)::DOUBLE, bytes_per_param::DOUBLE) END AS sum, files_ref
FROM expected
