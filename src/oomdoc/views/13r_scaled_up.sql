-- says: a scaler that added replicas, and nobody waits in the end: it has answered what stood in line; no row otherwise
-- scope: bundle
-- replicas: how many there were at most
-- ref: where the scaler says so
SELECT s.replicas, s.replicas_ref AS ref
FROM scaling s
WHERE s.moved AND s.replicas > coalesce(s.minimum, 1)
  AND coalesce((SELECT arg_max(waiting, line) = 0 FROM engine_stat WHERE waiting IS NOT NULL), true)
