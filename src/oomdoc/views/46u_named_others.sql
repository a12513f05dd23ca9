-- says: what other processes, which the allocator's message names, have of the failing device, against what was missing: whether the request would have fitted without them; no row where the message names none of any size
-- scope: incident
-- bytes: held by others
-- processes: how many
-- requested_bytes: failed request
-- missing_bytes: request - free
-- decides: something was missing, and what they hold is several times that
-- came_later: and the device was empty when the engine began: they came while it ran
-- less_than_own: another model of the same process ran out, and beyond weights, pool and graphs of the engine that process holds far more than they do
-- free_at_start_bytes: free when the engine began
-- ref: the message
SELECT other.bytes::BIGINT AS bytes, f.other_processes AS processes, f.requested_bytes, f.requested_bytes - f.free_bytes AS missing_bytes,
  other.bytes >= $others_hold_missing * (f.requested_bytes - f.free_bytes) AND f.requested_bytes > f.free_bytes AS decides,
  f.requested_bytes > f.free_bytes AND other.bytes >= $others_hold_missing * (f.requested_bytes - f.free_bytes)
    AND coalesce(e.total_bytes - e.free_at_start_bytes < $others_came_later * other.bytes, false) AS came_later,
  coalesce(f.in_other_code AND f.this_process_bytes - coalesce(e.weights_bytes + e.kv_available_bytes + coalesce(e.graph_bytes, 0), told.plan)
    > $own_beside_others * other.bytes, false) AS less_than_own,
  e.free_at_start_bytes, f.oom_ref AS ref
FROM failure f, engine e, LATERAL (
  -- ranks of the server that hold a context on this device, too, are no others
  SELECT f.other_bytes - coalesce((SELECT max(bytes) FROM guest_rank WHERE guests <= f.other_processes), 0) AS bytes
) other, (
  -- who reports a failure quotes the start behind it, or from another hour
  SELECT CASE WHEN count(DISTINCT value) FILTER (name = 'weights_bytes') = 1 AND count(DISTINCT value) FILTER (name = 'kv_available_bytes') = 1
    THEN max(value) FILTER (name = 'weights_bytes') + max(value) FILTER (name = 'kv_available_bytes') END AS plan
  FROM main.engine_figure
) told
WHERE other.bytes >= $neighbour_least AND NOT (f.other_processes < e.world_size)
