-- says: what of the failing device belongs neither to the process that failed nor to one that its message names, by subtraction; no row where the message does not tell the process's own share
-- scope: incident
-- bytes: total - free - this process - others and siblings that are named
-- share: of the device
-- total_bytes: device total
-- own_bytes: the failing process, as its message says
-- requested_bytes: failed request
-- much: more than contexts of the engine's other ranks and other small helpers take, and more than the request: with it the request would have fitted
-- ref: the message
SELECT total_bytes - free_bytes - this_process_bytes - coalesce(other_bytes, 0) - coalesce(sibling_bytes, 0) AS bytes,
  (total_bytes - free_bytes - this_process_bytes - coalesce(other_bytes, 0) - coalesce(sibling_bytes, 0)) / total_bytes AS share,
  total_bytes, this_process_bytes AS own_bytes, requested_bytes,
  coalesce(
    total_bytes - free_bytes - this_process_bytes - coalesce(other_bytes, 0) - coalesce(sibling_bytes, 0) >= greatest(
      CASE WHEN (SELECT parallel_given AND world_known AND world_size = 1 AND coalesce(data_parallel_size, 1) = 1 FROM engine) THEN $unowned_alone ELSE $unowned_share END * total_bytes, $unowned_requests * requested_bytes
    ), false
  ) AS much, oom_ref AS ref
FROM failure WHERE this_process_bytes > 0 AND total_bytes > free_bytes
