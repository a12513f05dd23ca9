-- says: requests that wait behind as many as the setting allows, while the pool is nowhere near full: the setting holds them back; no row where that is not so
-- scope: incident
-- waiting: the most that waited
-- running: the most that ran
-- cap: max_num_seqs
-- peak: the highest usage of the pool
-- times: points with a queue in which as many ran
-- ref: the longest queue among them
SELECT k.waiting_max AS waiting, k.running_max AS running, e.max_num_seqs AS cap, k.peak, k.capped AS times, k.capped_ref AS ref
FROM kv_pressure k, engine e
WHERE k.running_max = e.max_num_seqs AND k.cap = k.running_max AND k.peak < $never_near AND coalesce(k.preemptions, 0) = 0 AND k.state_ref IS NULL
  AND k.capped >= $capped_often * k.queued AND k.queued_roomy >= $roomy_often * k.samples AND k.samples >= $roomy_points AND k.waiting_max >= $roomy_queue
  -- what was handed in at once and worked off is its own queue
  AND NOT EXISTS (FROM heap)
