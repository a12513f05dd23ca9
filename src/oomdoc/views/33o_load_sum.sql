-- says: what became of the requests of load tests, all runs together; no row where no run sums them up
-- scope: bundle
-- done: answered
-- failed: without an answer, as the runs count them; where none does, those that were asked for less those that were answered; NULL = not told
-- ref: the first sum
-- where nobody counts the failed ones: those that were asked for and not answered, if each run tells how many it asked for
SELECT done, coalesce(failed, CASE WHEN runs = sums THEN greatest(asked - done, 0) END) AS failed, ref
FROM (
  SELECT sum(value) FILTER (name = 'bench:completed') AS done, sum(value) FILTER (name = 'bench:failed') AS failed,
    count(*) FILTER (name = 'bench:completed') AS sums, min(source || ':' || line) AS ref
  FROM metric
  WHERE name LIKE 'bench:%'
), (
  SELECT sum(requests) AS asked, count(requests) AS runs FROM load_run WHERE source IN (SELECT source FROM metric WHERE name = 'bench:completed')
)
WHERE done IS NOT NULL OR failed IS NOT NULL
