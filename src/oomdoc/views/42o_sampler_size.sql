-- says: whether what failed before anyone was served has the size of a table with a row for each of all sequences: of the vocabulary (logits, their sort) or of the positions (which token lies where); no row where nothing failed so or the numbers are not told
-- scope: incident
-- hit: the size is that of such a table
-- requested_bytes: what failed
-- seqs: sequences of the warm-up, or the most that may run; of positions what the size itself tells, where that is not said
-- each: tokens of the vocabulary, or positions
-- unit: which of the two
-- width: bytes of each in the table that comes nearest
-- what: which table that is
-- ref: the failure
WITH asked AS (
  SELECT f.requested_bytes, f.oom_ref AS ref, f.phase, coalesce(f.dummy_requests, e.max_num_seqs) AS seqs, x.vocab_size, coalesce(e.max_model_len, x.positions) AS positions
  FROM failure f, engine e, expectation x
  WHERE f.ooms > 0 AND f.in_states IS NOT TRUE AND f.requested_bytes >= $layer_sized
), tried AS (
  SELECT requested_bytes, ref, seqs AS rows, vocab_size AS each, 'tokens of vocabulary' AS unit, w.width, w.what
  FROM asked, (
    VALUES (2, ', the logits'), (4, ', the logits in 32 bits'), (8, ', the indices of the sort'), (12, ', the sort and its indices')
  ) w(width, what)
  WHERE phase IN ('profile', 'sampler-warmup', 'warmup', 'after-capture', 'capture') AND seqs >= $rows_that_tell
  UNION ALL
  -- a power of two is the default of engines that do not print it; one row more stands for no request
  SELECT requested_bytes, ref, n AS rows, positions AS each, 'positions' AS unit, 4 AS width, ', which token lies where' AS what
  FROM asked, LATERAL (SELECT unnest(CASE WHEN seqs IS NULL THEN [257, 513, 1025, 2049, 4097, 8193] ELSE [seqs, seqs + 1] END) AS n)
  WHERE phase = 'kv-alloc' AND n >= $rows_that_tell
)
SELECT min(abs(requested_bytes - rows * each * width)) <= any_value(greatest($allocator_rounds_bytes, $printed_to * requested_bytes)) AS hit,
  any_value(requested_bytes) AS requested_bytes, arg_min(rows, abs(requested_bytes - rows * each * width)) AS seqs,
  arg_min(each, abs(requested_bytes - rows * each * width)) AS each, arg_min(unit, abs(requested_bytes - rows * each * width)) AS unit,
  arg_min(width, abs(requested_bytes - rows * each * width)) AS width, arg_min(what, abs(requested_bytes - rows * each * width)) AS what, any_value(ref) AS ref
FROM tried
WHERE rows * each IS NOT NULL
HAVING count(*) > 0
