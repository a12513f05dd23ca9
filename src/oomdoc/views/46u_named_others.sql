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
SELECT other.bytes::BIGINT AS bytes, f.other_processes AS processes, f.requested_bytes, f.requested_bytes - f.free_bytes AS missing_bytes,
  other.bytes >= $others_hold_missing * (f.requested_bytes - f.free_bytes) AS decides,
  other.bytes >= $others_hold_missing * (f.requested_bytes - f.free_bytes)
    AND coalesce(e.total_bytes - e.free_at_start_bytes < $others_came_later * other.bytes, false) AS came_later,
  e.free_at_start_bytes, f.oom_ref AS ref
FROM failure f, engine e, LATERAL (
  -- ranks of the server that hold a context on this device, too, are no others
  SELECT f.other_bytes - coalesce((SELECT max(bytes) FROM guest_rank WHERE guests <= f.other_processes), 0) AS bytes
) other
WHERE other.bytes >= $neighbour_least AND NOT (f.other_processes < e.world_size)
