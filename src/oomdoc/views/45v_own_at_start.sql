-- says: a start was refused for little that was taken, on cards that hold next to nothing while no server runs: what was taken is the start's own, its contexts and communicators; no row otherwise
-- scope: incident
-- taken_bytes: not free when the engine measured, before it loaded anything
-- total_bytes: of the device
-- missing_bytes: what was asked for beyond what was free
-- rest_bytes: what the devices hold while nothing runs, at most
-- devices: how many were looked at
-- ref: the refusal
-- rest_ref: where a device was looked at
SELECT f.check_total_bytes - f.check_free_bytes AS taken_bytes, f.check_total_bytes AS total_bytes,
  f.check_wanted_bytes - f.check_free_bytes AS missing_bytes, d.used_max_bytes AS rest_bytes,
  (SELECT greatest(count(DISTINCT gpu), 1) FROM gpu_sample WHERE used_bytes IS NOT NULL) AS devices, f.check_ref AS ref,
  d.devices_ref AS rest_ref
FROM failure f, device d
WHERE f.check_name = 'free-memory' AND NOT coalesce(f.check_cpu, false)
  AND f.check_total_bytes - f.check_free_bytes <= $own_before_load * f.check_total_bytes
  AND d.used_max_bytes <= $rest_of_taken * (f.check_total_bytes - f.check_free_bytes)
