-- says: free memory of a host by the size of its pieces, as the kernel counts free blocks by order; no row where no list of it is there
-- scope: bundle
-- zones: lists there are (a zone of a host, at a time)
-- in_pieces: lists with much memory free and next to none of it in the two largest orders
-- whole: lists of which a tenth or more lies there, as after a start of the host
-- free_bytes: free in the largest list that is in pieces, with pages of 4 KiB: the least it can be
-- compactions_failed: attempts to make a large piece that failed / that were waited for; NULL = not told
-- ref: where that list stands
WITH listed AS (
  SELECT source, line, list_transform(string_split(text, ' '), lambda c: coalesce(try_cast(c AS DOUBLE), 0)) AS counts
  FROM note
  WHERE topic = 'free-blocks'
), weighed AS (
  SELECT source, line, list_sum(list_transform(counts, lambda c, i: c * 2 ** (i - 1))) AS pages,
         list_sum(list_transform(counts, lambda c, i: CASE WHEN i > len(counts) - 2 THEN c * 2 ** (i - 1) ELSE 0 END)) AS large FROM listed
), told AS (
  SELECT *, pages >= $pieces_free_pages AND large <= $pieces_large * pages AS pieces FROM weighed
), compaction AS (
  SELECT max(value) FILTER (text = 'compact_fail') / nullif(max(value) FILTER (text = 'compact_stall'), 0) AS failed
  FROM note
  WHERE topic = 'compaction'
)
SELECT count(*) AS zones, count(*) FILTER (pieces) AS in_pieces, count(*) FILTER (large >= 0.1 * pages) AS whole,
  (CASE WHEN bool_or(pieces) THEN least(max(pages) FILTER (pieces) * 4096, 9e18) END)::BIGINT AS free_bytes,
  (SELECT failed FROM compaction) AS compactions_failed,
  coalesce(arg_max(source || ':' || line, pages) FILTER (pieces), min(source || ':' || line)) AS ref
FROM told HAVING count(*) > 0
