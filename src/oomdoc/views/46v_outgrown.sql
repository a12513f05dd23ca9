-- says: a server that grew without a plateau on a device that it shares, by many times what then failed there for another process: who grows takes the room; no row otherwise
-- scope: incident
-- name: the server
-- gain_bytes: what it gained before
-- requested_bytes: what failed for the other
-- ref: its last reading
SELECT m.name, m.growth_bytes AS gain_bytes, f.requested_bytes, m.ref
FROM memory_trend m, failure f
WHERE m.climbing AND m.resource = 'gpu' AND m.growth_bytes >= $growth_explains * f.requested_bytes AND f.ooms > 0
  -- the others that the message names hold it, so it is not the one that failed
  AND f.other_bytes >= m.growth_bytes AND regexp_matches(m.name, '(?i)vllm|EngineCore|sglang|llm')
