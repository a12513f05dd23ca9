-- says: a network link of a host that goes down as a server stops: from then on it makes no token, with work in hand, to the end of its statistics; no row where that is not so, or the two cannot be compared in time
-- scope: bundle
-- device: the interface, as the kernel or its manager names it
-- seconds: from the link's end to the first reading without a token; below 0 where the reading covers the seconds before it
-- running: requests that run at the last reading
-- waiting: that wait there
-- samples: readings without a token, to the last
-- ref: where the link's end is told
WITH reading AS (
  SELECT source, line, t, running, coalesce(waiting, 0) AS waiting,
    coalesce(generation_tokens_per_s, 0) + coalesce(prompt_tokens_per_s, 0) = 0 AND coalesce(running > 0 OR waiting > 0, false) AS still
  -- of whichever server: who hands over to another waits for it as well
  FROM engine_stat
  WHERE EXISTS (FROM host_event WHERE kind = 'link-down' AND t IS NOT NULL) AND t IS NOT NULL AND coalesce(generation_tokens_per_s, prompt_tokens_per_s) IS NOT NULL
), moved AS (
  SELECT source, max(line) AS line, max(t) AS t FROM reading WHERE NOT still GROUP BY source
), stop AS (
  SELECT r.source, m.t AS last_t, min(r.t) AS still_t, count(*) AS samples, arg_max(r.running, r.line) AS running, arg_max(r.waiting, r.line) AS waiting
  FROM reading r
  JOIN moved m ON m.source = r.source AND r.line > m.line
  GROUP BY r.source, m.t
)
SELECT h.device, s.still_t - h.t AS seconds, s.running, s.waiting, s.samples, h.source || ':' || h.line AS ref
FROM stop s
-- requests that had all they need go on until they are answered
JOIN host_event h ON h.kind = 'link-down' AND h.t BETWEEN s.last_t - $answered_on_s AND s.still_t
WHERE s.samples >= $still_lines
ORDER BY abs(s.still_t - h.t), s.source, h.source, h.line LIMIT 1
