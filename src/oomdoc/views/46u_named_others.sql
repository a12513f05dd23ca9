-- says: what other processes, which the allocator's message names, have of the failing device, against what was missing: whether the request would have fitted without them; no row where the message names none of any size
-- scope: incident
-- bytes: held by others
-- processes: how many
-- requested_bytes: failed request
-- missing_bytes: request - free
-- decides: what they hold is several times what was missing
-- came_later: and the device was empty when the engine began: they came while it ran
-- free_at_start_bytes: free when the engine began
-- ref: the message
SELECT f.other_bytes AS bytes, f.other_processes AS processes, f.requested_bytes, f.requested_bytes - f.free_bytes AS missing_bytes,
  f.other_bytes >= $others_hold_missing * (f.requested_bytes - f.free_bytes) AS decides,
  f.other_bytes >= $others_hold_missing * (f.requested_bytes - f.free_bytes)
    AND coalesce(e.total_bytes - e.free_at_start_bytes < $others_came_later * f.other_bytes, false) AS came_later,
  e.free_at_start_bytes, f.oom_ref AS ref
FROM failure f, engine e
WHERE f.other_bytes >= $neighbour_least AND NOT (f.other_processes < e.world_size)
