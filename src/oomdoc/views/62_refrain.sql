-- says: a log that ends in a refrain: a part says again and again that it waits for another, or finds none, and no step follows; one row, the one that is said most often; no row where there is none
-- scope: bundle
-- times: how often it is said behind the last step
-- text: as it is said last
-- source: the log
-- first_ref: where it is said first behind the last step
-- ref: where it is said last
WITH said AS (
  -- what is told of memory is no wait for another part, nor is a caller's for an answer
  SELECT source, line, text, regexp_replace(lower(text), '[0-9][0-9a-f.:]*', '#', 'g')[:48] AS shape FROM note
  WHERE topic = 'waits-for'
    AND NOT regexp_matches(
      text, '(?i)\bmemory\b|\bkv\b|\bblocks?\b|\bvram\b|\bapplication (startup|shutdown)|\brequests?\b|\bto (finish|complete)\b|\bfirst (token|byte)\b|\bresponse\b'
    )
), step AS (
  SELECT source, max(line) AS line FROM (
    SELECT source, line FROM milestone UNION ALL SELECT source, line FROM engine_stat WHERE generation_tokens_per_s > 0
    UNION ALL
    SELECT source, line
    FROM request
    WHERE status BETWEEN 200 AND 399
    UNION ALL
    SELECT source, line
    FROM failure_event
    WHERE grade >= 2) GROUP BY source
)
SELECT count(*) AS times, arg_max(x.text, x.line) AS text, x.source, x.source || ':' || min(x.line) AS first_ref,
  x.source || ':' || max(x.line) AS ref
FROM said x JOIN source o ON o.source = x.source LEFT JOIN step s ON s.source = x.source
WHERE x.line > coalesce(s.line, 0)
  -- who waited for the engine, and it came up
  AND NOT (regexp_matches(x.text, '(?i)\bwaiting for (?:the )?(?:vllm|sglang|engine|model|server|inference|backend|upstream)\b') AND EXISTS (FROM engine_start u WHERE u.engine AND u.served)
    AND x.source NOT IN (SELECT source FROM engine_start WHERE engine))
  -- beside the log of a start, what another part finds gone is a consequence
  AND (x.source IN (SELECT source FROM engine_start WHERE engine) OR NOT EXISTS (FROM engine_start u WHERE u.engine AND u.marked AND NOT u.served))
GROUP BY x.source, x.shape, o.lines HAVING count(*) >= $refrain_times AND max(x.line) >= $refrain_end * o.lines
ORDER BY times DESC, x.source LIMIT 1
