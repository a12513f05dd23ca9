-- says: requests that are preempted again and again while no reading finds the pool crowded: somebody asks for it, as who resets the prefix cache with requests under way does, and no block was lacking; no row otherwise
-- scope: incident
-- rises: readings at which the counter stood higher than at the one before
-- value: where it stands
-- peak: the highest usage that was read
-- ref: its last rise
SELECT c.rises, c.value, k.peak, c.ref
FROM preempt_course c, kv_pressure k
-- an engine that lacks a block warns of it where it says a word of preemption at all
WHERE c.rises >= $roomy_points AND k.samples >= c.rises AND k.peak < $pool_crowded AND NOT EXISTS (FROM seen.preemption)
