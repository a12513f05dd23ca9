-- says: lines that call a failure want of memory where the exception that they were raised from is none: a server's guess about its own warm-up, and what repeats it
-- scope: bundle
-- source: log that shows it
-- line: which line
-- cause_line: the exception that came first
WITH guess AS (
  -- an allocator tells what it was asked for, or says that it is out of memory; a sentence that does neither is a conclusion
  SELECT source, line
  FROM oom
  WHERE requested_bytes IS NULL AND total_bytes IS NULL AND free_bytes IS NULL AND NOT regexp_matches(text, '(?i)out of memory|OutOfMemory|alloc')
), first AS (
  SELECT g.source, g.line, max(e.line) AS cause_line
  FROM guess g
  JOIN log_error e ON e.source = g.source AND e.line < g.line AND e.line + $traceback_lines_before >= g.line
  WHERE e.exception IS NOT NULL AND e.kind NOT IN ('memory', 'host-memory', 'shm', 'echo', 'client')
    -- the traceback of the second begins where that of the first ends
    AND EXISTS (FROM frame f WHERE f.source = g.source AND f.line > e.line AND f.line < g.line)
    AND NOT EXISTS (FROM oom o WHERE o.source = g.source AND o.line < g.line)
  GROUP BY g.source, g.line
)
SELECT g.source, g.line, f.cause_line FROM guess g JOIN first f ON f.source = g.source AND g.line >= f.line
