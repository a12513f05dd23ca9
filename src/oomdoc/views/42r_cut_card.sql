-- says: the MIG instance that the server runs on, and the card that it is a part of; no row without an instance
-- scope: bundle
-- profile: as named, e.g. 2g.20gb
-- slice_bytes: memory of the instance; NULL = not told
-- card_bytes: memory of the whole card: by its product name, else by the eighths that the profile takes
-- ref: where the instance is named
SELECT mig_profile AS profile, total_bytes AS slice_bytes,
  coalesce(try_cast(nullif(regexp_extract(name, '(?i)(\d{2,3}) ?GB', 1), '') AS DOUBLE) * 1e9,
           -- the memory of a card is cut into eighths: 1g takes one (or two), 2g two, 3g and 4g four, 7g all
           try_cast(regexp_extract(mig_profile, '(\d+)gb', 1) AS DOUBLE) * 1e9 * 8 / CASE regexp_extract(mig_profile, '^(\d)g', 1)
             WHEN '1' THEN 1 WHEN '2' THEN 2 WHEN '3' THEN 4 WHEN '4' THEN 4 WHEN '7' THEN 8 END) AS card_bytes, mig_ref AS ref
FROM device WHERE mig_profile IS NOT NULL
