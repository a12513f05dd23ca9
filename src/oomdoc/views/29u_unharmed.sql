-- says: the server served, and nobody who used it was ever seen to lack anything: none waits for more than the next step in any of many readings, next to nothing is preempted, requests are answered; no row where that is not so or not told
-- scope: incident
-- readings: statistics of its pool
-- requests: requests that are told of, all answered; 0 = none is told
SELECT k.samples AS readings, coalesce(t.statuses, 0) AS requests
FROM kv_pressure k JOIN fate ON fate.outcome = 'served' LEFT JOIN traffic t ON true
WHERE k.samples >= $readings_enough AND (k.eased OR k.queued = 0 AND k.share_pinned < $pinned_lasts)
  AND (coalesce(k.preemptions, 0) = 0 OR EXISTS (FROM preempted_aside))
  AND coalesce(t.failed + t.refused + t.unanswered + t.client_gone, 0) = 0
