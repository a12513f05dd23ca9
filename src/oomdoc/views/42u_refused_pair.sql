-- says: the start in focus was refused a pool, and another start of the bundle with weights of the same size and the same settings got one, or one of the same model and the same settings came up; no row without such a pair
-- scope: incident
-- tokens: the pool of the other start; NULL = it came up, and its pool is not told
-- weights_bytes: weights of both, per rank; NULL = not told of the other
-- utilization: share of the card that both plan with
-- other_ref: where the other start's pool stands, or where that start begins
-- ref: the refusal
SELECT b.tokens::BIGINT AS tokens, b.weights::BIGINT AS weights_bytes, e.gpu_memory_utilization AS utilization, b.ref AS other_ref, x.check_ref AS ref
FROM focus f JOIN incident i USING (incident) JOIN failure x ON x.check_name = 'no-kv-blocks' JOIN engine e ON true JOIN start_pair b ON b.own = i.start_id
WHERE NOT EXISTS (FROM cut_card)  -- on an instance of a card the other start may have had more
ORDER BY b.tokens DESC NULLS LAST, b.ref LIMIT 1
