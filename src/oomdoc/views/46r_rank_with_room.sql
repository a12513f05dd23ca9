-- says: a start that was refused for want of cache blocks while one of its ranks had room for them: another has none; no row where no rank's room is told, or little
-- scope: incident
-- room_bytes: the most that a rank had for its cache
-- ranks: of the server
-- ref: where that stands
-- the engine asks every rank and refuses by the one that has least
SELECT e.kv_available_max_bytes AS room_bytes, e.world_size AS ranks, coalesce(e.kv_available_ref, f.check_ref) AS ref
FROM failure f, engine e
WHERE f.check_name = 'no-kv-blocks' AND e.world_size >= 2 AND e.kv_available_max_bytes >= $room_of_a_rank
