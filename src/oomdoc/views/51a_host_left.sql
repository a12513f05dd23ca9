-- says: the least that a listing of the host's memory (`free`, `top`) shows as available; no row where none is there
-- scope: bundle
-- left_bytes: what was available
-- total_bytes: that and what was in use
-- nothing_left: less than the kernel keeps for itself: it ends programs, or stalls in the search for pages
-- ref: where
SELECT min(ready)::BIGINT AS left_bytes, arg_min(ready + in_use, ready)::BIGINT AS total_bytes,
  coalesce(min(ready) < $dry_at_the_end * arg_min(ready + in_use, ready), false) AS nothing_left, arg_min(ref, ready) AS ref
FROM (
  SELECT source || ':' || line AS ref, max(value) FILTER (topic = 'host-ready') AS ready, max(value) FILTER (topic = 'host-in-use') AS in_use
  FROM note
  WHERE topic IN ('host-ready', 'host-in-use')
  GROUP BY source, line
)
HAVING count(*) > 0
