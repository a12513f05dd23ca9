-- says: one row per device that the server was put on by its number or uuid; none where nobody says on which
-- scope: bundle
-- device: index or uuid, as it was told
SELECT DISTINCT trim(unnest(string_split(value, ','))) AS device
FROM engine_flag
WHERE flag IN ('CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES')
  AND origin IN ('environment', 'command') AND regexp_matches(value, '^ *(\d{1,2}|GPU-[0-9a-f-]{8,})( *, *(\d{1,2}|GPU-[0-9a-f-]{8,}))* *$')
  -- in a pod the numbers are those of what it was given
  AND NOT EXISTS (FROM container WHERE pod IS NOT NULL)
