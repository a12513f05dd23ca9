-- says: what torch held at the failure beyond all that the plan of this server has a place for: weights, pool, the profiled peak and graph pools; no row where one of them is not told
-- scope: incident
-- held_bytes: allocated by torch at the failure
-- planned_bytes: weights + pool + profiled peak + private pools
-- beyond_bytes: held less planned
-- within: what was held and the request that failed are no more than planned: the step was profiled for, and what lacks was taken elsewhere; NULL = the request is not told
-- step_tokens: tokens of the failing step; NULL = not told
-- plan_tokens: tokens that the peak was profiled with
-- ref: the allocator's message
SELECT f.allocated_bytes AS held_bytes,
  l.weights_bytes + l.kv_pool_bytes + l.activation_bytes + coalesce(f.private_pool_bytes, 0) AS planned_bytes,
  f.allocated_bytes - l.weights_bytes - l.kv_pool_bytes - l.activation_bytes - coalesce(f.private_pool_bytes, 0) AS beyond_bytes,
  f.allocated_bytes + f.requested_bytes <= l.weights_bytes + l.kv_pool_bytes + l.activation_bytes + coalesce(f.private_pool_bytes, 0) AS within,
    f.scheduled_tokens AS step_tokens,
  coalesce(e.max_num_batched_tokens, x.max_num_batched_tokens) AS plan_tokens, f.oom_ref AS ref
FROM failure f, engine e LEFT JOIN expectation x ON true, (FROM ledger ORDER BY rank NULLS FIRST LIMIT 1) l
WHERE f.phase = 'forward' AND l.kv_pool_bytes > 0 AND f.allocated_bytes + l.weights_bytes + l.activation_bytes IS NOT NULL
