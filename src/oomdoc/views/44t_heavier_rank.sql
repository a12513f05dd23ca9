-- says: what the device that ran out of memory carries of the weights, beside the others of one server; no row where fewer than two devices tell, or the failure names none
-- scope: incident
-- ranks: devices or ranks that tell what they loaded
-- own_bytes: weights on the one that failed
-- light_bytes: the least that one of the others carries
-- mean_bytes: what each would carry, were all alike
-- heaviest: no other carries as much, and the difference matters
-- even_fits: with everything spread alike all would have had room for what failed, by the last reading of each device; NULL = no readings, or devices of several sizes
-- room_bytes: of the one that failed, what its card has beyond the weights and the cache that were put on it; NULL = sizes of the cards are not told, or one holds more than the card has and the numbers are not those of the cards
-- room_else_bytes: the same of the others, their median
-- ref: the failure
WITH carried AS (
  SELECT rank, max(value) AS bytes FROM seen.engine_figure WHERE name = 'weights_bytes' AND rank IS NOT NULL GROUP BY rank
), held AS (
  SELECT sum(used_bytes) AS used, min(total_bytes) AS total, count(*) AS devices
  FROM (
    SELECT gpu, arg_max(used_bytes, source) AS used_bytes, max(total_bytes) AS total_bytes
    FROM device_series
    WHERE gpu IS NOT NULL
    GROUP BY host, gpu
  )
  HAVING min(total_bytes) = max(total_bytes)
), placed AS (
  SELECT f.rank, any_value(g.total) - sum(f.bytes) AS room
  FROM (
    SELECT rank, name, max(value) AS bytes
    FROM seen.engine_figure
    WHERE name IN ('weights_bytes', 'kv_available_bytes', 'activation_bytes')
    GROUP BY ALL
  ) f
  JOIN (SELECT gpu, max(total_bytes) AS total FROM gpu_device GROUP BY gpu) g ON g.gpu = f.rank
  GROUP BY f.rank
), left_over AS (
  SELECT f.device, max(p.room) FILTER (p.rank = f.device) AS own, median(p.room) FILTER (p.rank <> f.device) AS others
  FROM placed p, failure f
  GROUP BY f.device
  HAVING min(p.room) >= 0
)
SELECT c.ranks, own.bytes::BIGINT AS own_bytes, c.light::BIGINT AS light_bytes, c.mean::BIGINT AS mean_bytes,
  own.bytes = c.heavy AND own.bytes - c.light >= $ranks_alike * own.bytes AS heaviest,
  (h.used + f.requested_bytes) / h.devices < h.total AS even_fits, o.own::BIGINT AS room_bytes, o.others::BIGINT AS room_else_bytes,
    f.oom_ref AS ref
FROM failure f
JOIN carried own ON own.rank = f.device
JOIN (SELECT count(*) AS ranks, min(bytes) AS light, max(bytes) AS heavy, avg(bytes) AS mean FROM carried) c ON c.ranks >= 2
  LEFT JOIN held h ON h.devices = c.ranks LEFT JOIN left_over o ON o.device = f.device
