-- says: whether what failed before anyone was served is a buffer of all sequences at once, a row of the vocabulary for each; no row where nothing failed so or the numbers are not told
-- scope: incident
-- hit: the size is that of such a buffer
-- requested_bytes: what failed
-- seqs: sequences of the warm-up, or the most that may run
-- vocab_size: tokens of the vocabulary
-- width: bytes of a token in the buffer that comes nearest
-- what: which buffer that is
-- ref: the failure
SELECT min(abs(f.requested_bytes - rows * x.vocab_size * w.width)) <= any_value(greatest($allocator_rounds_bytes, $printed_to * f.requested_bytes)) AS hit,
  any_value(f.requested_bytes) AS requested_bytes, any_value(rows) AS seqs, any_value(x.vocab_size) AS vocab_size,
  arg_min(w.width, abs(f.requested_bytes - rows * x.vocab_size * w.width)) AS width,
  arg_min(w.what, abs(f.requested_bytes - rows * x.vocab_size * w.width)) AS what, any_value(f.oom_ref) AS ref
FROM failure f, engine e, expectation x,
  (
    VALUES (2, ', the logits'), (4, ', the logits in 32 bits'), (8, ', the indices of the sort'), (12, ', the sort and its indices')
  ) w(width, what), LATERAL (SELECT coalesce(f.dummy_requests, e.max_num_seqs) AS rows)
WHERE f.ooms > 0 AND f.in_states IS NOT TRUE AND f.phase IN ('profile', 'sampler-warmup', 'warmup', 'after-capture', 'capture') AND rows >= $rows_that_tell
  AND f.requested_bytes >= $layer_sized
HAVING count(*) > 0
