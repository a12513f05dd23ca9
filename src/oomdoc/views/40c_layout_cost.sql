-- says: what a token takes on each rank in two layouts of one model that differ in shards alone; no row where no two such were measured
-- scope: bundle
-- more_bytes: with more shards
-- few_bytes: with fewer
-- many: how many times the shards, by the settings and ranks, else by the weights of a rank
-- ref: the layout of more shards
SELECT more_bytes, few_bytes, round(ratio)::INTEGER AS many, ref
FROM (
  -- a stage holds its share of the layers: a token of all of them takes as many times what it holds
  SELECT b.pp * b.kv_bytes / b.kv_tokens AS more_bytes, a.pp * a.kv_bytes / a.kv_tokens AS few_bytes,
    coalesce(b.tp::DOUBLE / a.tp, a.weights_bytes / b.weights_bytes) AS ratio, b.ref
  FROM layout a
  JOIN layout b ON a.place = b.place AND a.model IS NOT DISTINCT FROM b.model AND a.others = b.others
    AND (a.pp = b.pp OR (a.tp > 0 AND b.tp > 0)) AND a.dp = b.dp
  WHERE a.kv_tokens > 0 AND b.kv_tokens > 0 AND a.kv_bytes > 0 AND b.kv_bytes > 0
)
WHERE round(log2(ratio)) >= 1 AND abs(log2(ratio) - round(log2(ratio))) <= $near_a_doubling
-- heads are split as far as they go: the first doubling may halve the bytes, the next one leaves them
ORDER BY more_bytes >= $token_stays * few_bytes DESC, ratio DESC, ref LIMIT 1
