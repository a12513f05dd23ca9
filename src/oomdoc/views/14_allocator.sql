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
WITH last_of AS (SELECT source, device, max(summary) AS summary FROM allocator_stat GROUP BY ALL),
one AS (
  SELECT a.source, a.device, min(a.source || ':' || a.line) AS ref, max(current) FILTER (metric = 'allocated_bytes' AND pool = 'all') AS allocated, max(current) FILTER (metric = 'reserved_bytes' AND pool = 'all') AS reserved,
    max(current) FILTER (metric = 'inactive_split_bytes' AND pool = 'all') AS split, max(current) FILTER (metric = 'num_ooms') AS ooms, max(current) FILTER (metric = 'num_alloc_retries') AS retries
  FROM allocator_stat a JOIN last_of l ON a.source = l.source AND a.device IS NOT DISTINCT FROM l.device AND a.summary = l.summary GROUP BY ALL
)
SELECT (SELECT count(*) FROM (SELECT DISTINCT source, summary FROM allocator_stat)) AS tables, arg_max(ref, split) AS ref, arg_max(allocated, split) AS allocated_bytes, arg_max(reserved, split) AS reserved_bytes, max(split) AS inactive_split_bytes,
  max(split / nullif(reserved, 0)) AS split_share, arg_max(reserved - allocated, split) AS cached_bytes, max(ooms) AS ooms, max(retries) AS retries
FROM one HAVING count(*) > 0
