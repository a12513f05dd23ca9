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
-- gap_rises: summaries in which reserved - allocated was larger than in the one before, and larger than ever: of the device whose gap grew most
-- gap_grew_bytes: how much it grew from its least to the last
-- live_grew_bytes: how much what is in use grew since the gap began to grow
-- gap_share: what it grew / what is reserved at last
-- held_bytes: reserved in the last of them
-- gap_ref: where the last of them stands
-- hollow: over three or more summaries of one source what is in use stayed, while what torch holds grew, and its holes with it
-- first_reserved_bytes: held by torch in the first of these
-- first_split_bytes: holes then
-- gap_bytes: the largest free piece at last; NULL = not told
WITH last_of AS (SELECT source, device, max(summary) AS summary FROM allocator_stat GROUP BY ALL),
one AS (
  SELECT a.source, a.device, arg_min(a.source || ':' || a.line, a.line) AS ref,
    max(current) FILTER (metric = 'allocated_bytes') AS allocated,
    max(current) FILTER (metric = 'reserved_bytes') AS reserved,
    max(current) FILTER (metric = 'inactive_split_bytes') AS split, max(current) FILTER (metric = 'num_ooms') AS ooms,
      max(current) FILTER (metric = 'num_alloc_retries') AS retries
  FROM allocator_stat a
  JOIN last_of l ON a.source = l.source AND a.device IS NOT DISTINCT FROM l.device AND a.summary = l.summary
  GROUP BY ALL
), moment AS (
  SELECT source, device, summary, min(line) FILTER (metric IN ('allocated_bytes', 'reserved_bytes')) AS line,
    max(current) FILTER (metric = 'allocated_bytes') AS live, max(current) FILTER (metric = 'reserved_bytes') AS reserved,
    max(current) FILTER (metric = 'inactive_split_bytes') AS split, max(current) FILTER (metric = 'largest_free_bytes') AS largest_free
  FROM allocator_stat GROUP BY ALL
), gap AS (
  SELECT *, reserved - live AS gap,
    max(reserved - live) OVER (PARTITION BY source, device ORDER BY summary ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS most
  FROM moment
  WHERE reserved - live IS NOT NULL
), height AS (
  SELECT source, device, count(*) FILTER (gap > most) AS rises, arg_max(gap, summary) - min(gap) AS grew, min(gap) AS least
  FROM gap
  GROUP BY source, device
), grown AS (
  -- what is in use is compared from where the gap was at its foot for the last time
  SELECT any_value(h.rises) AS rises, any_value(h.grew) AS grew,
    arg_max(g.live, g.summary) - arg_max(g.live, g.summary) FILTER (g.gap <= h.least + $gap_foot * h.grew) AS live_grew,
    arg_max(g.reserved, g.summary) AS held,
         arg_max(g.source || ':' || g.line, g.summary) AS gap_ref
  FROM gap g
  JOIN height h ON h.source = g.source AND h.device IS NOT DISTINCT FROM g.device
  GROUP BY g.source, g.device
  ORDER BY grew DESC
  LIMIT 1
), steady AS (
  SELECT count(*) AS n, max(live) - min(live) AS live_spread, max(live) AS live, arg_min(reserved, summary) AS reserved_first,
    arg_max(reserved, summary) AS reserved_last, arg_min(split, summary) AS split_first, arg_max(split, summary) AS split_last,
    arg_max(largest_free, summary) AS largest_free
  FROM moment
  WHERE live > 0 AND split IS NOT NULL
  GROUP BY source, device
  HAVING count(*) >= $hollow_points
  ORDER BY n DESC, source
  LIMIT 1
)
SELECT (SELECT count(*) FROM (SELECT DISTINCT source, summary FROM allocator_stat)) AS tables, arg_max(ref, split) AS ref,
  arg_max(allocated, split) AS allocated_bytes, arg_max(reserved, split) AS reserved_bytes, max(split) AS inactive_split_bytes,
  max(split / nullif(reserved, 0)) AS split_share, arg_max(reserved - allocated, split) AS cached_bytes, max(ooms) AS ooms,
    max(retries) AS retries,
  any_value(g.rises) AS gap_rises, any_value(g.grew)::BIGINT AS gap_grew_bytes, any_value(g.live_grew)::BIGINT AS live_grew_bytes,
    any_value(g.grew / nullif(g.held, 0)) AS gap_share, any_value(g.held)::BIGINT AS held_bytes, any_value(g.gap_ref) AS gap_ref,
  any_value(
    coalesce(
      c.live_spread <= $hollow_level * c.live AND c.reserved_last - c.reserved_first >= $hollow_grown * c.reserved_first
        AND c.split_last - c.split_first >= $hollow_of_holes * (c.reserved_last - c.reserved_first), false
    )
  ) AS hollow,
  any_value(c.reserved_first) AS first_reserved_bytes, any_value(c.split_first) AS first_split_bytes, any_value(c.largest_free) AS gap_bytes
FROM one LEFT JOIN grown g ON true LEFT JOIN steady c ON true HAVING count(one.source) > 0
