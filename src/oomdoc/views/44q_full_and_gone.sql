-- says: a load that ended on a full device without a word: the device of a server that never came up filled to its end and was empty again, and the weights of its model are more than it holds; no row where an allocator or a check says what failed
-- scope: incident
-- device: as the samples name it
-- peak_bytes: highest memory in use
-- total_bytes: what the device holds
-- expected_bytes: weights of the model on one rank
-- ref: the sample that shows the first fall
SELECT d.device, d.peak_bytes, m.total_bytes::BIGINT AS total_bytes, w.bytes::BIGINT AS expected_bytes, d.ref
FROM fill_and_drop d, engine e, failure f, model m
LEFT JOIN expectation x ON true, LATERAL (SELECT coalesce(m.expected_rank_bytes, x.weights_low_bytes) AS bytes) w
WHERE NOT coalesce(e.served, false) AND coalesce(f.ooms, 0) = 0 AND f.check_name IS NULL
  AND d.peak_bytes >= $filled_to_the_end * m.total_bytes AND w.bytes > m.total_bytes
ORDER BY d.peak_bytes DESC, d.ref LIMIT 1
