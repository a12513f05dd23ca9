-- says: engines that take prompts in and give no answers out, as their statistics tell: of prefill and decode apart, those that prefill; their blocks wait to be fetched, and their requests run elsewhere
-- scope: bundle
-- source: the log
-- engine: its number, as printed; NULL = none is
-- waits: requests waited in it
SELECT source, engine, coalesce(max(waiting), 0) > 0 AS waits FROM engine_stat
GROUP BY source, engine
HAVING max(prompt_tokens_per_s) >= $idle_rate AND max(generation_tokens_per_s) < $prefill_rate
  AND count(*) >= $prefill_lines
