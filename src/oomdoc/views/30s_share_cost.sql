-- says: the same load served with two shares of the device, much slower with the larger: what that takes is paged out, which fails no allocation; no row where nobody measured that
-- scope: bundle
-- low: the smaller share, as written
-- high: the larger
-- fast: tokens a second with the smaller
-- slow: with the larger
-- ref: where one of the two stands
SELECT from_value AS low, to_value AS high, from_amount AS fast, to_amount AS slow, ref
FROM effect
-- a larger pool alone serves as much, or more
WHERE flag = 'gpu_memory_utilization' AND quantity = 'tokens_s' AND from_amount >= $slower_by * to_amount
  AND try_cast(from_value AS DOUBLE) < try_cast(to_value AS DOUBLE)
ORDER BY from_amount / to_amount DESC, ref
LIMIT 1
