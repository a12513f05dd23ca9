-- says: what the files of the model in focus take on the disk, by a list of its folder or by the index of its weights; no row where neither tells, or several models are listed and none is this one
-- scope: incident
-- bytes: size of all files of the set; NULL = the set is not whole, or not all of it is listed
-- absent: files of the set that are not there, or empty; NULL = not told
-- folder: where they lie
-- same: the folder is called as the model is; else it is the only one that is told
-- indexed_bytes: what the tensors of the set take by the index that lies beside it; NULL = no index tells
-- ref: where the list stands
WITH listed AS (
  SELECT total_bytes AS bytes, absent, folder, source || ':' || line AS ref,
    -- a hub's cache: `.../models--org--Name-7B/snapshots/<hash>`
    lower(regexp_extract(coalesce(nullif(regexp_extract(folder, 'models--.*--([^/]+)', 1), ''), folder), '[^/]*$')) AS name,
    total_bytes IS NOT NULL AS whole, file = 'listing' AS list
  FROM model_file WHERE file IN ('listing', 'weights-index') AND (total_bytes IS NOT NULL OR absent > 0)
), marked AS (
  SELECT l.*, coalesce(name = lower(regexp_extract(e.model, '[^/]*$')) OR starts_with(lower(folder), lower(e.model)) OR starts_with(lower(e.model), lower(folder)), false) AS same
  FROM listed l, engine e
), chosen AS (
  FROM marked WHERE same OR (NOT EXISTS (FROM marked WHERE same) AND (SELECT count(DISTINCT folder) <= 1 FROM marked))
)
SELECT bytes, absent, folder, same, (SELECT CASE WHEN count(DISTINCT bytes) = 1 THEN max(bytes) END FROM marked WHERE NOT list) AS indexed_bytes, ref FROM chosen
-- two lists of different sizes lie on two hosts, or one was replaced
WHERE (SELECT count(DISTINCT bytes) FILTER (list) <= 1 FROM chosen)
ORDER BY list DESC, whole DESC, ref LIMIT 1
