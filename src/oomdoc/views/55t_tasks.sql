-- says: the threads and processes of a group at their most, against how many it may have; no row where not both are told together
-- scope: bundle
-- tasks: the most of any look
-- most: how many it may have
-- used_up: no further thread can be made, but for what the last look missed
-- ref: that look
SELECT o.value::BIGINT AS tasks, m.value::BIGINT AS most, o.value >= $tasks_used * m.value AS used_up, o.source || ':' || o.line AS ref
FROM note o
JOIN note m ON m.topic = 'tasks-limit' AND m.value > 0 AND m.source = o.source AND abs(m.line::INTEGER - o.line::INTEGER) <= $told_together
WHERE o.topic = 'tasks'
ORDER BY o.value / m.value DESC, ref
LIMIT 1
