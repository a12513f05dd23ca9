-- says: another start of the same weights got a larger pool, and what this one lacks of it is what other processes hold on the device; no row where that is not so
-- scope: incident
-- small_tokens: tokens of the smaller pool
-- large_tokens: of the larger
-- lacks_bytes: the difference, at the bytes that a token takes per rank
-- others_bytes: what the processes beside the largest hold
-- ref: where the smaller pool stands
-- others_ref: where the processes are listed
SELECT p.small_tokens, p.large_tokens, ((p.large_tokens - p.small_tokens) * x.kv_bytes_per_token)::BIGINT AS lacks_bytes, p.others_bytes, p.ref, p.others_ref
FROM pool_pair p, expectation x
WHERE p.processes >= 2 AND abs(lacks_bytes - p.others_bytes) <= $taken_is_lacking * p.others_bytes
