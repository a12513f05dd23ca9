-- says: replicas that are begun again and again and replicas that run, by the nodes that they are on: nodes whose cards are cut into MIG instances, and nodes with whole cards
-- scope: bundle
-- on_slices: failing replicas on nodes of slices
-- on_whole: failing replicas on nodes of whole cards
-- served_slices: running replicas on nodes of slices
-- served_whole: running replicas on nodes of whole cards
-- node: a node of slices with a failing replica
-- ref: where such a replica is listed
WITH node AS (
  SELECT text AS name, bool_or(topic = 'node-of-slices') AS cut
  FROM note
  WHERE topic IN ('node-of-slices', 'node-of-whole-devices')
  GROUP BY text
), replica AS (
  SELECT c.pod, n.cut, c.node, c.source || ':' || c.line AS ref, c.state = 'Running' AND c.restarts = 0 AS runs,
    c.reason = 'CrashLoopBackOff' OR (c.restarts > 0 AND c.state <> 'Terminated') AS fails
  FROM container c JOIN node n ON n.name = c.node
)
SELECT count(*) FILTER (cut AND fails) AS on_slices, count(*) FILTER (NOT cut AND fails) AS on_whole,
  count(*) FILTER (cut AND runs) AS served_slices, count(*) FILTER (NOT cut AND runs) AS served_whole,
  min(node) FILTER (cut AND fails) AS node, min(ref) FILTER (cut AND fails) AS ref
FROM replica HAVING count(*) > 0
