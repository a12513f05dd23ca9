-- says: engines that take prompts in and give no answers out, as their statistics tell: of prefill and decode apart, those that prefill; their blocks wait to be fetched, and their requests run elsewhere
-- scope: bundle
-- source: the log
-- engine: its number, as printed; NULL = none is
-- waits: requests waited in it
-- fetched_late: in another log requests queue behind some that run while its pool is crowded: whoever ought to fetch the blocks has no room for them yet
WITH side AS (
  SELECT source, engine, coalesce(max(waiting), 0) > 0 AS waits FROM engine_stat
  GROUP BY source, engine
  HAVING max(generation_tokens_per_s) < $prefill_rate AND count(*) >= $prefill_lines
    -- who tells no rate of prompts had work in hand and gave nothing out
    AND coalesce(max(prompt_tokens_per_s) >= $idle_rate, count(*) FILTER (running > 0 AND generation_tokens_per_s = 0) >= $prefill_lines)
)
SELECT source, engine, waits,
  (SELECT count(*) FROM engine_stat o WHERE o.source <> side.source AND o.running > 0 AND o.waiting > 0 AND o.kv_used >= $pool_crowded
    AND NOT EXISTS (FROM side s WHERE s.source = o.source AND s.engine IS NOT DISTINCT FROM o.engine)) >= $prefill_lines AS fetched_late
FROM side
