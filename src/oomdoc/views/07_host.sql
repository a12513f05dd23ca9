-- says: what the kernel, the container runtime, Ray and the log say about host memory, shared memory and kills
-- scope: bundle
-- oom_kills: kills by the kernel or the container limit that name memory as the reason
-- kill_ref: where
-- kill_process: victim
-- kill_bytes: its resident set
-- kill_limit_bytes: the limit, where named
-- beside_kills: other processes that the kernel ended because the whole host was full
-- beside_process: the first of them
-- beside_ref: where
-- kill_scope: container or node
-- kill_t: when; NULL where its clock is not known
-- oomkilled: a container was ended with reason OOMKilled
-- oomkilled_ref: where
-- memory_limit_bytes: container memory limit
-- ray_kills: kills by Ray's memory monitor
-- ray_ref: where
-- alloc_failures: host allocations that failed (pinned ones included)
-- alloc_ref: where
-- alloc_bytes: size asked
-- pinned: a pinned allocation failed
-- swap_refused: swap space was refused or warned about
-- shm_events: statements that shared memory is too small, or bus errors
-- shm_ref: where
-- shm_text: what they say
-- bus_errors: of them bus errors
-- sigkills: processes that ended by SIGKILL (-9, 137)
-- sigkill_ref: where
-- sigbus: processes that ended by SIGBUS (-7, 135)
-- silent_deaths: a worker vanished without a Python error (runtime's notice, or no code) and without a fault of its own
-- silent_ref: where
-- cgroup_watched: counters of the container's memory group are in the bundle
-- cgroup_kills: kills counted there
-- kernel_log: a kernel log is in the bundle, and begins before the server's last known moment: one that begins later tells nothing of its end
-- process_limit_bytes: a cap on the address space of a process
-- xids: Xid lines
-- xid_ref: where
-- reboot: the node went down
-- faults: ends by a fault of the program itself: SIGSEGV, SIGILL, SIGFPE (139, 132, 136), which no lack of memory sends
-- fault_ref: where
-- by_hand: kill commands that name a process of the engine as listed, and no orphan of an earlier life
-- by_hand_ref: where
-- by_hand_text: the command
-- evicted_for_memory: the kubelet evicted the pod because the node was short of memory
-- evicted_for_other: the kubelet evicted the pod for another resource: disk, inodes, process ids
-- evicted_ref: where
-- evicted_text: what the kubelet said
WITH near AS (
  -- the kernel ended somebody else because the whole host was full: the server was not ended by that
  SELECT source, line, whose FROM main.relation WHERE of_table = 'host_event' AND whose IN ('near', 'unknown')
), event AS (
  SELECT h.*, h.source || ':' || h.line AS ref, nullif(regexp_extract(h.text, '(?:StepId=|^)(\d{3,10})', 1), '') AS job, n.whose IS NOT DISTINCT FROM 'near' AND h.kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill', 'slurm-oom-kill') AS beside,
    -- 45 is the clean-up behind a process that ended, whatever ended it (NVIDIA's catalogue of Xid errors); one at another time than the server's, or at one that nobody can compare, explains nothing
    h.kind = 'xid' AND count IS DISTINCT FROM 45 AND n.whose IS DISTINCT FROM 'unknown' AS of_driver
  FROM host_event h
  LEFT JOIN near n ON n.source = h.source AND n.line = h.line
),
folded AS (
  SELECT count(DISTINCT coalesce(pid::VARCHAR, ref)) FILTER (kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill') AND NOT beside)
    -- Slurm tells one end of a job by each of its steps, by `srun` and in its list of jobs: a line that names no job is of one that is named
    + greatest(count(DISTINCT job) FILTER (kind = 'slurm-oom-kill' AND NOT beside), count(DISTINCT kind) FILTER (kind = 'slurm-oom-kill' AND NOT beside)) AS oom_kills,
    min_by(
      ref, (process IS NULL AND bytes IS NULL, line)
    ) FILTER (kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill', 'slurm-oom-kill') AND NOT beside) AS kill_ref,
    count(DISTINCT coalesce(pid::VARCHAR, ref)) FILTER (beside) AS beside_kills, min_by(ref, (process IS NULL, line)) FILTER (beside) AS beside_ref,
    min_by(process, (process IS NULL, line)) FILTER (beside) AS beside_process,
    max(limit_bytes) FILTER (kind = 'cgroup-oom-count') AS counted_limit_bytes,
    bool_or(kind = 'cgroup-oom-kill' AND NOT beside) AS cgroup,
    count(*) FILTER (kind = 'ray-memory-kill') AS ray_kills, min(ref) FILTER (kind = 'ray-memory-kill') AS ray_ref,
    count(*) FILTER (kind IN ('host-alloc-failed', 'pinned-alloc-failed')) AS alloc_failures,
      min(ref) FILTER (kind IN ('host-alloc-failed', 'pinned-alloc-failed')) AS alloc_ref,
    max(bytes) FILTER (kind IN ('host-alloc-failed', 'pinned-alloc-failed')) AS alloc_bytes,
      bool_or(kind = 'pinned-alloc-failed') AS pinned, bool_or(kind = 'swap-space') AS swap,
    count(*) FILTER (kind IN ('bus-error', 'shm-full')) AS shm_events, min(ref) FILTER (kind IN ('bus-error', 'shm-full')) AS shm_ref,
      min_by(text, line) FILTER (kind IN ('shm-full', 'bus-error')) AS shm_text,
    count(*) FILTER (kind = 'bus-error') AS bus_errors, count(*) FILTER (kind = 'worker-died') AS died,
      min(ref) FILTER (kind = 'worker-died') AS died_ref,
    bool_or(kind = 'cgroup-oom-count') AS cgroup_watched, max(count) FILTER (kind = 'cgroup-oom-count') AS cgroup_kills,
      max(limit_bytes) FILTER (kind = 'process-limit') AS process_limit,
    count(*) FILTER (of_driver) AS xids, min(ref) FILTER (of_driver) AS xid_ref, bool_or(kind = 'reboot') AS reboot,
    min(ref) FILTER (kind = 'cgroup-oom-count' AND count > 0) AS cgroup_ref
  FROM event
), killed AS (
  -- one kill, whole: the first that names its victim; never the name of one, the size of another and the limit of a third
  SELECT source || ':' || line AS ref, process, bytes, limit_bytes, t
  FROM host_kill
  WHERE kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill', 'slurm-oom-kill') AND whose IS DISTINCT FROM 'near'
  ORDER BY process IS NULL AND bytes IS NULL, t IS NULL, t, source, line LIMIT 1
), ended AS (
  SELECT name FROM container WHERE (reason = 'OOMKilled' OR last_reason = 'OOMKilled') AND name IS NOT NULL
), boxes AS (
  SELECT bool_or(reason = 'OOMKilled' OR last_reason = 'OOMKilled') AS oomkilled,
    min(source || ':' || line) FILTER (reason = 'OOMKilled' OR last_reason = 'OOMKilled') AS ref,
    -- of the one that was ended; another's limit only where the names do not tell them apart
    coalesce(
      max(memory_limit_bytes) FILTER (reason = 'OOMKilled' OR last_reason = 'OOMKilled'),
      max(memory_limit_bytes) FILTER (name IS NULL OR name IN (FROM ended) OR NOT EXISTS (FROM ended))
    ) AS memory_limit, count(*) AS n FROM container
), exits AS (
  SELECT count(*) FILTER (exit_code IN (-9, 137)) AS sigkills, min(source || ':' || line) FILTER (exit_code IN (-9, 137)) AS sigkill_ref,
    count(*) FILTER (exit_code IN (-7, 135)) AS sigbus,
         min(source || ':' || line) FILTER (exit_code IN (-7, 135)) AS sigbus_ref
  FROM (
    SELECT exit_code, source, line FROM process_exit
    WHERE exit_code IN (-9, 137, -7, 135) AND (source, line) NOT IN (SELECT (source, line) FROM watchdog_end)
    UNION ALL
    -- a container ends with its first process, and with its signal
    SELECT exit_code, source, line FROM container WHERE exit_code = 135
  )
), fault AS (
  SELECT count(*) AS n, min(ref) AS ref FROM (
    SELECT source || ':' || line AS ref
    FROM process_exit
    WHERE exit_code IN (-11, -4, -8, 139, 132, 136)
    UNION ALL
    SELECT ref
    FROM event
    WHERE kind = 'segfault'
    UNION ALL SELECT source || ':' || line FROM container WHERE exit_code IN (139, 132, 136))
), evicted AS (
  -- `The node was low on resource: ephemeral-storage`, `The node had condition: [DiskPressure]`
  SELECT bool_or(regexp_matches(message, '(?i)resource: memory|MemoryPressure')) AS for_memory,
    bool_or(
      regexp_matches(message, '(?i)resource: (?:ephemeral-storage|inodes|pids|nodefs|imagefs)|DiskPressure|PIDPressure')
    ) AS for_other,
         min(source || ':' || line) AS ref, min_by(message, line) AS text FROM cluster_event WHERE reason = 'Evicted'
), mount AS (
  -- of what is listed only shared memory can be short: the least is the default of a container or less, and every disk has room
  SELECT min(value) FILTER (value > 0) <= $default_shm_bytes
    AND min(value) FILTER (topic = 'disk-free') >= $disk_has_room AS only_shm
  FROM note
  WHERE topic IN ('shm-size', 'disk-free')
), complaint_of AS (
  -- error 28 that names no file is about whatever has no room
  SELECT * REPLACE (
    CASE WHEN text LIKE '%No space left on device%' AND NOT regexp_matches(text, '[:''"(] ?''?/|device [^\n]*/')
      AND coalesce((SELECT only_shm FROM mount), false) THEN 'shm' ELSE kind END AS kind
  )
  FROM log_error
  WHERE kind IN ('host-memory', 'shm') OR (text LIKE '%No space left on device%' AND coalesce((SELECT only_shm FROM mount), false))
), logged AS (
  SELECT count(*) FILTER (kind = 'host-memory') AS n, min(source || ':' || line) FILTER (kind = 'host-memory') AS ref,
         count(*) FILTER (kind = 'shm') AS shm, min(source || ':' || line) FILTER (kind = 'shm') AS shm_ref,
           min_by(text, line) FILTER (kind = 'shm') AS shm_text
         FROM complaint_of
), checked AS (
  SELECT bool_or(name = 'swap-space') AS swap, count(*) FILTER (name = 'shm-space') AS shm
  FROM startup_check
  WHERE name IN ('swap-space', 'shm-space')
), vanished AS (
  -- the log of a server that had come up tells of a death, its status unknown, and of no error before it
  SELECT count(*) AS n, min_by(source || ':' || line, line) AS ref FROM failure_event
  WHERE kind = 'exit' AND grade = 2 AND start_id IS NOT NULL
    AND (SELECT bool_and(x.exit_code IS NULL) FROM process_exit x WHERE x.source = failure_event.source AND x.line = failure_event.line)
), aimed AS (
  -- `kill -9 78`, `kill -KILL 77 78`: whose process it is stands in a listing, or in what the devices hold
  SELECT ref, text, unnest(string_split(regexp_extract(text, '\bkill\s+(?:-s\s+)?-?(?:9|KILL|SIGKILL)\s+((?:\d+\s*)+)', 1), ' ')) AS pid
  FROM event
  WHERE kind = 'killed-by-operator'
), hand AS (
  SELECT count(*) AS n, min(ref) AS ref, min_by(text, ref) AS text FROM aimed a
  WHERE (EXISTS (FROM process_memory p WHERE p.name LIKE '% (pid ' || a.pid || ')' AND regexp_matches(p.name, '(?i)vllm|engine_?core|worker|ray::|api_server|python'))
      OR EXISTS (FROM gpu_process g WHERE g.pid::VARCHAR = a.pid))
    AND NOT EXISTS (FROM note o WHERE o.topic = 'orphan-process' AND regexp_matches(o.text, '(?:^|\s)' || a.pid || '\s'))
), last_known AS (
  SELECT max(t) AS t
  FROM (
    SELECT t FROM milestone UNION ALL SELECT t FROM engine_stat UNION ALL SELECT t FROM log_error
    UNION ALL SELECT t FROM process_exit UNION ALL SELECT ended_t FROM container WHERE serves
  )
), kernel AS (
  SELECT count(*) AS n
  FROM source s
  LEFT JOIN note n ON n.source = s.source AND n.topic = 'kernel-log-from', last_known k
  WHERE s.kind = 'kernel-log' AND NOT coalesce(n.value > k.t, false)
)
, page_locked AS (
  -- a CUDA error right after page-locked memory was asked for is the host's refusal
  SELECT count(*) AS n, min(e.source || ':' || e.line) AS ref
  FROM note n
  JOIN log_error e ON e.source = n.source AND e.line BETWEEN n.line AND n.line + $pinned_error_lines
  WHERE n.topic = 'pinned-alloc' AND e.text LIKE 'CUDA error: %'
), swapped AS (
  -- swap space is page-locked: the engine warns that it takes much of the host, and the driver's refusal reads `invalid argument`
  SELECT count(*) AS n, min(e.source || ':' || e.line) AS ref, min(n.value) AS bytes
  FROM note n
  JOIN log_error e ON e.source = n.source AND e.line > n.line
  WHERE n.topic = 'swap-space' AND e.text LIKE 'CUDA error: invalid argument%'
    AND NOT EXISTS (
      SELECT 1
      FROM milestone m
      WHERE m.source = n.source AND m.line BETWEEN n.line AND e.line AND m.name IN ('capture-start', 'captured', 'serving')
    )
)
SELECT oom_kills + coalesce(cgroup_kills, 0) AS oom_kills, coalesce(killed.ref, kill_ref, cgroup_ref) AS kill_ref,
  killed.process AS kill_process, killed.bytes AS kill_bytes, coalesce(killed.limit_bytes, counted_limit_bytes) AS kill_limit_bytes, killed.t AS kill_t,
  beside_kills, beside_process, beside_ref,
  CASE WHEN cgroup OR cgroup_kills > 0 THEN 'container' WHEN oom_kills > 0 THEN 'node' END AS kill_scope,
  boxes.oomkilled, boxes.ref AS oomkilled_ref, boxes.memory_limit AS memory_limit_bytes, ray_kills, ray_ref,
    alloc_failures + logged.n + page_locked.n + swapped.n AS alloc_failures,
    coalesce(alloc_ref, logged.ref, page_locked.ref, swapped.ref) AS alloc_ref, coalesce(alloc_bytes, swapped.bytes)::BIGINT AS alloc_bytes,
  coalesce(pinned, false) OR page_locked.n + swapped.n > 0 AS pinned,
  coalesce(greatest(folded.swap, checked.swap), false) AS swap_refused,
  shm_events + logged.shm + coalesce(checked.shm, 0) AS shm_events, coalesce(folded.shm_ref, logged.shm_ref, sigbus_ref) AS shm_ref,
    coalesce(folded.shm_text, logged.shm_text) AS shm_text, bus_errors,
  sigkills, sigkill_ref, sigbus, CASE WHEN fault.n = 0 THEN died + vanished.n ELSE 0 END AS silent_deaths,
    coalesce(died_ref, vanished.ref) AS silent_ref, coalesce(cgroup_watched, false) AS cgroup_watched, cgroup_kills,
    kernel.n > 0 OR oom_kills > 0 AS kernel_log,
  process_limit AS process_limit_bytes, xids, xid_ref, coalesce(reboot, false) AS reboot,
  fault.n AS faults, fault.ref AS fault_ref, hand.n AS by_hand, hand.ref AS by_hand_ref, hand.text AS by_hand_text,
    coalesce(evicted.for_memory, false) AS evicted_for_memory, coalesce(evicted.for_other, false) AS evicted_for_other,
    evicted.ref AS evicted_ref, evicted.text AS evicted_text
FROM folded LEFT JOIN killed ON true, boxes, exits, logged, checked, vanished, kernel, page_locked, swapped, fault, evicted, hand
