-- says: the last torch memory_summary of each device folded to the worst; no row without such a table
-- scope: bundle
-- tables: summaries in the bundle
-- ref: where the worst stands
-- allocated_bytes: in use
-- reserved_bytes: held by torch
-- inactive_split_bytes: holes that cannot be given back
-- split_share: inactive split / reserved
-- cached_bytes: reserved - allocated
-- ooms: out-of-memory errors that torch counted
-- retries: flushes of the cache to make room
-- hollow: over three or more summaries of one source what is in use stayed, while what torch holds grew, and its holes with it
-- first_reserved_bytes: held by torch in the first of these
-- first_split_bytes: holes then
-- gap_bytes: the largest free piece at last; NULL = not told
WITH last_of AS (SELECT source, device, max(summary) AS summary FROM allocator_stat GROUP BY ALL),
one AS (
  SELECT a.source, a.device, min(a.source || ':' || a.line) AS ref, max(current) FILTER (metric = 'allocated_bytes' AND pool = 'all') AS allocated, max(current) FILTER (metric = 'reserved_bytes' AND pool = 'all') AS reserved,
    max(current) FILTER (metric = 'inactive_split_bytes' AND pool = 'all') AS split, max(current) FILTER (metric = 'num_ooms') AS ooms, max(current) FILTER (metric = 'num_alloc_retries') AS retries
  FROM allocator_stat a JOIN last_of l ON a.source = l.source AND a.device IS NOT DISTINCT FROM l.device AND a.summary = l.summary GROUP BY ALL
), moment AS (
  SELECT source, device, summary, max(current) FILTER (metric = 'allocated_bytes') AS live, max(current) FILTER (metric = 'reserved_bytes') AS reserved, max(current) FILTER (metric = 'inactive_split_bytes') AS split, max(current) FILTER (metric = 'largest_free_bytes') AS gap
  FROM allocator_stat WHERE pool = 'all' GROUP BY ALL
), course AS (
  SELECT count(*) AS n, max(live) - min(live) AS live_spread, max(live) AS live, arg_min(reserved, summary) AS reserved_first, arg_max(reserved, summary) AS reserved_last, arg_min(split, summary) AS split_first, arg_max(split, summary) AS split_last, arg_max(gap, summary) AS gap
  FROM moment WHERE live > 0 AND reserved > 0 AND split IS NOT NULL GROUP BY source, device HAVING count(*) >= $hollow_points ORDER BY n DESC, source LIMIT 1
)
SELECT (SELECT count(*) FROM (SELECT DISTINCT source, summary FROM allocator_stat)) AS tables, arg_max(ref, split) AS ref, arg_max(allocated, split) AS allocated_bytes, arg_max(reserved, split) AS reserved_bytes, max(split) AS inactive_split_bytes,
  max(split / nullif(reserved, 0)) AS split_share, arg_max(reserved - allocated, split) AS cached_bytes, max(ooms) AS ooms, max(retries) AS retries,
  any_value(coalesce(c.live_spread <= $hollow_level * c.live AND c.reserved_last - c.reserved_first >= $hollow_grown * c.reserved_first AND c.split_last - c.split_first >= $hollow_of_holes * (c.reserved_last - c.reserved_first), false)) AS hollow,
  any_value(c.reserved_first) AS first_reserved_bytes, any_value(c.split_first) AS first_split_bytes, any_value(c.gap) AS gap_bytes
FROM one LEFT JOIN course c ON true HAVING count(one.source) > 0
