-- says: work that was done to its end: every request that is told of was answered, the server was stopped in order behind them, and its pool never stood full; no row where that is not so
-- scope: bundle
-- requests: requests of which it is told what became of them
-- ref: where it was stopped
SELECT t.statuses AS requests, n.ref
FROM traffic t
JOIN (SELECT min(source || ':' || line) AS ref FROM note WHERE topic = 'ended-orderly') n ON n.ref IS NOT NULL
WHERE t.statuses >= $batch_requests AND t.failed + t.refused + t.unanswered + t.client_gone = 0
  AND NOT EXISTS (FROM engine_stat WHERE kv_used >= $pool_pinned)
