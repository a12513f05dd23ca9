-- says: what of the failing device belongs neither to the process that failed nor to one that its message names, by subtraction; no row where the message does not tell the process's own share
-- scope: incident
-- bytes: total - free - this process - others and siblings that are named
-- share: of the device
-- total_bytes: device total
-- own_bytes: the failing process, as its message says
-- requested_bytes: failed request
-- much: more than contexts and other small helpers take, and more than the request: with it the request would have fitted
-- ref: the message
SELECT total_bytes - free_bytes - this_process_bytes - coalesce(other_bytes, 0) - coalesce(sibling_bytes, 0) AS bytes,
  (total_bytes - free_bytes - this_process_bytes - coalesce(other_bytes, 0) - coalesce(sibling_bytes, 0)) / total_bytes AS share,
  total_bytes, this_process_bytes AS own_bytes, requested_bytes,
  coalesce(
    total_bytes - free_bytes - this_process_bytes - coalesce(other_bytes, 0) - coalesce(sibling_bytes, 0) >= greatest(
      $unowned_share * total_bytes, $unowned_requests * requested_bytes
    ), false
  ) AS much, oom_ref AS ref
FROM failure WHERE this_process_bytes > 0 AND total_bytes > free_bytes
