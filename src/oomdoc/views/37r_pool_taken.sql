-- says: another start of the same weights got a larger pool, and what this one lacks of it is what others hold on the device: processes of a list, or what was used of a device until this start and is no level of it any more; no row where that is not so
-- scope: incident
-- small_tokens: tokens of the smaller pool
-- large_tokens: of the larger
-- lacks_bytes: the difference, at the bytes that a token takes per rank
-- others_bytes: what the processes beside the largest hold, or what was used of the device before the start
-- ref: where the smaller pool stands
-- others_ref: where the processes are listed, or the device was read
WITH lack AS (
  SELECT p.*, ((p.large_tokens - p.small_tokens) * x.kv_bytes_per_token)::BIGINT AS lacks_bytes FROM pool_pair p, expectation x
), stood AS (
  -- who measures devices from outside of a container sees no process: an engine comes on top of what was there
  SELECT median(g.used_bytes)::BIGINT AS others_bytes, min(g.source || ':' || g.line) AS others_ref
  FROM lack l
  -- a start that prints no pool is told by the scrapes that come after it
  JOIN start_pool s ON s.tokens = l.small_tokens OR s.tokens IS NULL AND l.weights_bytes IS NULL
  JOIN gpu_sample g ON abs(l.lacks_bytes - g.used_bytes) <= $stood_is_lacking * g.used_bytes
  -- nobody beside it in a list says nothing of when it began: who was there then may be gone
  WHERE coalesce(l.processes, 0) < 2
  GROUP BY s.start_id, s.t
  HAVING (count(*) FILTER (g.t < s.t) >= $stood_samples
      OR count(*) FILTER (g.t < s.t) >= $stood_equal AND count(DISTINCT g.used_bytes) FILTER (g.t < s.t) = 1) AND max(g.t) <= s.t + $loaded_within
    AND EXISTS (FROM gpu_sample a WHERE a.t > s.t + $loaded_within AND a.used_bytes > 0)
  ORDER BY others_ref
  LIMIT 1
), told AS (
  SELECT others_bytes, others_ref FROM lack
  WHERE processes >= 2 AND abs(lacks_bytes - others_bytes) <= $taken_is_lacking * others_bytes
  UNION ALL
  FROM stood
)
SELECT l.small_tokens, l.large_tokens, l.lacks_bytes, t.others_bytes, l.ref, t.others_ref
FROM lack l, told t
