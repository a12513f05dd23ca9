-- says: a start that was refused for want of cache memory while one of its ranks had room for it: another has less; no row where no rank's room is told, or little
-- scope: incident
-- room_bytes: the most that a rank had for its cache
-- told_bytes: what the refusal says that there is; 0 = none
-- ranks: of the server
-- ref: where that stands
-- the engine asks every rank and refuses by the one that has least
SELECT e.kv_available_max_bytes AS room_bytes, coalesce(f.available_bytes, 0) AS told_bytes, e.world_size AS ranks, coalesce(e.kv_available_ref, f.check_ref) AS ref
FROM failure f, engine e
WHERE e.world_size >= 2 AND (
  (f.check_name = 'no-kv-blocks' AND e.kv_available_max_bytes >= $room_of_a_rank)
    -- a rank that had twice as much, and enough for the request that was refused
    OR (f.check_name = 'kv-below-max-model-len' AND f.available_bytes > 0 AND e.kv_available_max_bytes >= $twice_the_room * f.available_bytes AND e.kv_available_max_bytes >= f.needed_bytes)
)
