-- says: what the files of the model in focus take on the disk, by a list of its folder or by the index of its weights; no row where neither tells, or several models are listed and none is this one
-- scope: incident
-- bytes: size of all files of the set; NULL = the set is not whole, or not all of it is listed
-- absent: files of the set that are not there, or empty; NULL = not told
-- folder: where they lie
-- ref: where the list stands
WITH listed AS (
  SELECT total_bytes AS bytes, absent, folder, source || ':' || line AS ref,
    -- a hub's cache: `.../models--org--Name-7B/snapshots/<hash>`
    lower(regexp_extract(coalesce(nullif(regexp_extract(folder, 'models--.*--([^/]+)', 1), ''), folder), '[^/]*$')) AS name,
    total_bytes IS NOT NULL AS whole, file = 'listing' AS list
  FROM model_file WHERE file IN ('listing', 'weights-index') AND (total_bytes IS NOT NULL OR absent > 0)
), marked AS (
  SELECT l.*, e.model IS NOT NULL AND (name = lower(regexp_extract(e.model, '[^/]*$')) OR starts_with(lower(folder), lower(e.model)) OR starts_with(lower(e.model), lower(folder))) AS same
  FROM listed l, engine e
)
SELECT bytes, absent, folder, ref FROM marked
-- one set alone is of the one model that is served; two of different sizes under its name lie on two hosts, or one was replaced
WHERE (same OR NOT EXISTS (FROM marked WHERE same OR folder IS NOT NULL) OR (SELECT count(DISTINCT folder) = 1 AND NOT bool_or(same) FROM marked))
  AND (SELECT count(DISTINCT bytes) FILTER (same AND list) <= 1 FROM marked)
ORDER BY same DESC, list DESC, whole DESC, ref LIMIT 1
