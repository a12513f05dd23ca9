-- says: what a device held before the start in focus began, and at every later sample: it is not the start's own; no row for a server that came up, or where no sample with a time is from before
-- scope: incident
-- device: as the samples number it
-- held_bytes: the least that was in use, from minutes before the start on
-- rose_bytes: the most that was in use, less that
-- total_bytes: of the device
-- left_bytes: budget of the start, less its weights and what is held; NULL = one of them is not told, or it has several ranks
-- rest_bytes: the same on an empty device
-- alike_bytes: what a start of the same weights and settings got for its pool; NULL = there is none, or the bytes of a token are not known
-- need_bytes: what one request of the longest length takes; NULL = not known
-- samples: how many
-- ref: the last sample before the start began
WITH begun AS (
  -- by the engine's own clock, in whose zone the host's other tools tell the time, where a collector's is another
  SELECT p.t - coalesce(z.value, 0) AS t, p.start_id
  FROM focus f
  JOIN incident i USING (incident)
  JOIN start_pool p ON p.start_id = i.start_id
  LEFT JOIN note z ON z.topic = 'log-zone' AND z.source = i.start_source
  JOIN engine e ON NOT coalesce(e.served, false)
  WHERE p.t IS NOT NULL
), sample AS (
  SELECT s.source, s.gpu, s.line, s.t, s.used_bytes, s.total_bytes, b.t AS begun_t
  FROM gpu_sample s
  JOIN begun b ON s.t >= b.t - $taken_before_s
  WHERE s.used_bytes IS NOT NULL AND coalesce((SELECT sum(samples) FROM device_series), 0) <= $most_followed
), held AS (
  SELECT source, gpu, min(used_bytes) AS held, max(used_bytes) - min(used_bytes) AS rose, max(total_bytes) AS total, count(*) AS samples,
    arg_max(source || ':' || line, t) FILTER (t < begun_t) AS ref, count(*) OVER (PARTITION BY source) AS devices
  FROM sample
  GROUP BY source, gpu
  HAVING count(*) FILTER (t < begun_t) > 0 AND count(*) FILTER (t >= begun_t) > 0
)
SELECT h.gpu AS device, h.held AS held_bytes, h.rose AS rose_bytes, h.total AS total_bytes,
  CASE WHEN e.world_size = 1 THEN budget - e.weights_bytes - h.held END::BIGINT AS left_bytes,
  CASE WHEN e.world_size = 1 THEN budget - e.weights_bytes END::BIGINT AS rest_bytes,
  CASE WHEN e.world_size = 1
    THEN (SELECT max(a.tokens) FROM start_pair a JOIN begun b ON b.start_id = a.own) * x.kv_bytes_per_token END::BIGINT AS alike_bytes,
  (e.max_model_len * x.kv_bytes_per_token)::BIGINT AS need_bytes, h.samples, h.ref
FROM held h LEFT JOIN expectation x ON true, engine e, LATERAL (SELECT coalesce(e.budget_bytes, e.gpu_memory_utilization * coalesce(e.total_bytes, h.total)) AS budget)
-- of several devices the one that the start itself fills further
WHERE (h.devices = 1 OR h.rose >= $rise_of_a_load)
  -- samples of whole cards are not of the instance that the server has
  AND NOT EXISTS (FROM device WHERE mig_profile IS NOT NULL)
ORDER BY h.rose DESC, h.held DESC, h.ref LIMIT 1
