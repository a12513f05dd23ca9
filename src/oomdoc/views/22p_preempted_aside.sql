-- says: preemptions that are no sign of a pool that is short: of another time, of hardly a request, or again and again while no reading finds the pool crowded, as where somebody resets the prefix cache with requests under way; no row otherwise
-- scope: incident
-- why: past, rare or unforced
-- ref: where they are counted
SELECT 'past' AS why, ref FROM preempt_course WHERE past
UNION ALL SELECT 'rare', ref FROM preempt_rate WHERE rare
-- an engine that lacks a block warns of it where it says a word of preemption at all
UNION ALL SELECT 'unforced', c.ref FROM preempt_course c, kv_pressure k
WHERE c.rises >= $roomy_points AND k.samples >= c.rises AND k.peak < $pool_crowded AND NOT EXISTS (FROM seen.preemption)
