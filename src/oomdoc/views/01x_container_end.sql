-- says: one row per container as it was described, with what its last end tells
-- scope: bundle
-- source: where
-- line: which line
-- pod: its pod
-- state: as it is now
-- reason: of that
-- last_reason: of its last end
-- exit_code: of its last end
-- restarts: how often it was started again; NULL = not told
-- ran_s: how long the last life ran, seconds
-- serves: its image or command is a server's; NULL = not told
-- another_day: its last end was so long before it was started anew that nobody needed it in between: none of the life that runs now
-- orderly: its last end was one: 0, or 143 (SIGTERM) as of a rollout
-- with_machine: it went with its machine: the kubelet found it gone (255, Unknown)
-- by_itself: it ended with a status of its own below 128, or by a signal that a process brings upon itself (ILL, ABRT, BUS, FPE, SEGV: 132, 134 to 136, 139); NULL = the status is not told
SELECT source, line, pod, state, reason, last_reason, exit_code, restarts, ran_s, serves, coalesce(state = 'Running' AND started_t > ended_t + $another_day, false) AS another_day,
  coalesce(exit_code IN (0, 143), false) AS orderly, coalesce(last_reason = 'Unknown' AND coalesce(exit_code, 255) = 255, false) AS with_machine,
  coalesce(last_reason, reason) = 'Error' AND reason IS DISTINCT FROM 'OOMKilled' AND (exit_code BETWEEN 1 AND 127 OR exit_code IN (132, 134, 135, 136, 139)) AS by_itself
FROM container c
-- a pod that makes room for another is over: how it fared says nothing of the one that serves
WHERE NOT (reason IS NOT DISTINCT FROM 'Terminating' AND EXISTS (FROM container n WHERE n.state = 'Running' AND n.pod <> c.pod))
