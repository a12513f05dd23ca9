"""Processes that the kernel, an oom daemon, a container runtime or a batch system ended for memory, and those that a signal ended."""

from __future__ import annotations

import re

from oomdoc.ingest.base import Pattern, Row, pattern, phrases
from oomdoc.ingest.host_events.rows import event, fact, host_event, size_in_bytes
from oomdoc.units import KIB


def _victim(row: Row, match: re.Match[str]) -> Row | None:
    rest, scope, named = row.pop("rest"), row.pop("scope", None), row.pop("oom", None)
    if not named and "total-vm" not in rest:
        return None  # somebody else's "Killed process"
    resident = re.search(r"anon-rss:(\d+ ?kB)", rest)
    if resident:
        row["bytes"] = size_in_bytes(resident[1])
    return host_event("cgroup-oom-kill" if scope else "node-oom-kill" if named else "oom-kill", row, match)


def _constraint(row: Row, match: re.Match[str]) -> Row | None:
    return host_event("cgroup-oom-kill" if row.pop("constraint") == "MEMCG" else "node-oom-kill", row, match)


_EXIT = r"\bexit(?:ed)?[ _-]?(?:code|status|with)\W{0,3}(?:code|status)?\W{0,3}(?<![\d.])(?:135|(?<=\D)-7)(?![\d.])"
# kernel/auditsc.c, audit_core_dumps: who ended abnormally, and by which signal
_AUDIT = r"type=(?:ANOM_ABEND|1701) .{0,300}\bpid=(?P<pid>\d{1,9}) comm=\"?(?P<process>[^\s\"]{1,64})\"? .{0,300}\bsig="
_CORE = r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S{1,6}) +(?P<pid>\d{1,9}) +\d+ +\d+ "
_CORE_FILE = r" +(?:present|missing|none|inaccessible|truncated|journal|error) +(?P<process>\S{1,120})"
"""A row of `coredumpctl list`: time, pid, uid, gid, signal, whether the core is kept, program."""
PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "kernel-oom-victim", "kernel", ("Killed process", "Kill process"),
        (
            r"(?:(?P<scope>Memory cgroup )?(?P<oom>[Oo]ut of memory(?: \([^)]*\))?): )?"
            r"Kill(?:ed)? process (?P<pid>\d+),? (?:UID \d+,? )?\((?P<process>[^)]*)\)(?P<rest>.*)",
        ),
        _victim,
        (
            "[ 91.1] Memory cgroup out of memory: Killed process 4711 (VLLM::Worker) total-vm:9000kB, "
            "anon-rss:2048kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:48kB oom_score_adj:0",
            {"kind": "cgroup-oom-kill", "pid": 4711, "process": "VLLM::Worker", "bytes": 2048 * KIB, "t": None},
        ),
        ("[Thu Nov 19 04:00:01 2026] Out of memory: Killed process 88 (python3) total-vm:9kB, anon-rss:4kB", {"kind": "node-oom-kill", "pid": 88, "bytes": 4096, "t": 1795060801.0}),
        ("Out of memory: Kill process 88 (python3) score 903 or sacrifice child", {"kind": "node-oom-kill", "process": "python3"}),
        ("Killed process 88 (python3) total-vm:9kB, anon-rss:4kB", {"kind": "oom-kill", "bytes": 4096}),
    ),
    pattern(
        "kernel-oom-constraint", "kernel", ("oom-kill:constraint",),
        (
            r"oom-kill:constraint=CONSTRAINT_(?P<constraint>\w+)(?:.{0,2000}?\btask_memcg=(?P<memory_group>[^,]{1,500}))?"
            r".{0,2000}?\btask=(?P<process>[^,]*),pid=(?P<pid>\d+)",
        ),
        _constraint,
        ("oom-kill:constraint=CONSTRAINT_MEMCG,cpuset=/,oom_memcg=/a,task_memcg=/a,task=python,pid=12,uid=0", {"kind": "cgroup-oom-kill", "pid": 12, "process": "python", "memory_group": "/a"}),
        ("oom-kill:constraint=CONSTRAINT_NONE,...,task=a::b,pid=13,uid=0", {"kind": "node-oom-kill", "pid": 13}),
    ),
    pattern(
        "kernel-cgroup-usage", "kernel", ("memory: usage", "as a result of limit of"),
        (
            r"(?<![\w+])memory: usage (?P<size>\d+ ?kB), limit (?P<limit>\d+ ?kB), failcnt \d+",
            r"Tasks? in (?P<memory_group>\S+) killed as a result of limit of",
        ),
        event("cgroup-usage"),
        ("[ 91.1] memory: usage 2048kB, limit 2048kB, failcnt 17", {"bytes": 2048 * KIB, "limit_bytes": 2048 * KIB, "pid": None}),
        ("Task in /docker/ab killed as a result of limit of /docker/ab", {"memory_group": "/docker/ab"}),
    ),
    pattern(
        "kernel-oom-invoked", "kernel", ("invoked oom-killer", "oom_reaper: reaped"),
        (r"\binvoked oom-killer: ", r"oom_reaper: reaped process (?P<pid>\d+) \((?P<process>[^)]*)\)"),
        event("oom-kill"),
        ("python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", {"process": None}),
        ("oom_reaper: reaped process 31 (VLLM::Worker), now anon-rss:0kB", {"pid": 31, "process": "VLLM::Worker"}),
    ),
    pattern(
        "kubelet-system-oom", "kubelet", ("System OOM encountered",),
        (r"System OOM encountered, victim process: (?P<process>[^,]+), pid: (?P<pid>\d+)",),
        event("node-oom-kill"),
        ("System OOM encountered, victim process: python3, pid: 77", {"pid": 77, "process": "python3"}),
    ),
    pattern(
        "oom-daemon", "systemd",
        ("systemd-oomd", "being more than", "sending SIG", "killed by the OOM killer", "with result"),
        (
            r"(?:systemd-oomd\S* |^)Killed /\S*?(?P<process2>[^/\s]+?)(?:\.(?:scope|service|slice))? due to memory (?:used|pressure)",
            r"systemd-oomd\S* Killed ",
            r"sending SIG(?:TERM|KILL) to process (?P<pid>\d+) uid \d+ \"(?P<process>[^\"]+)\": .{0,200}VmRSS",
            r"(?:(?P<process3>[\w@\\.-]{1,80})\.(?:service|scope): )?A process(?:es)? of this unit (?:has|have) been killed by the OOM killer",
            r"process(?:es)? of this unit (?:has|have) been killed by the OOM killer",
            r"(?:(?P<process4>[\w@\\.-]{1,80})\.(?:service|scope): )?Failed with result 'oom-kill'",
        ),
        event("node-oom-kill"),
        ("vllm.service: A process of this unit has been killed by the OOM killer.", {"process": "vllm"}),
        ("Killed /user.slice/a.scope due to memory used (60) / total (62) and swap used being more than 90.00%", {"process": "a"}),
        ('sending SIGTERM to process 12 uid 0 "python3": oom_score 900, VmRSS 2000 MiB', {"pid": 12, "process": "python3"}),
    ),
    pattern(
        # macOS: what it ends as idle it would end anyway, and a process beyond a limit of its own is no full host
        "jetsam", "kernel", ("memorystatus: killing",),
        (r"\bmemorystatus: killing_(?:top_process|highwater_process|largest\w*) pid (?P<pid>\d+) \[(?P<process>[^\]]{1,64})\](?! \(per-process-limit)(?:.{0,80}?\)\s+(?P<size>\d+ ?KB))?",),
        event("node-oom-kill"),
        (
            "2027-03-02 11:20:04.118 Df kernel[0:4a] memorystatus: killing_top_process pid 611 [worker] (fg 100) 2048KB - memorystatus_available_pages: 7120",
            {"pid": 611, "process": "worker", "bytes": 2048 * KIB},
        ),
    ),
    pattern(
        "docker-oom", "docker", ("OOMKilled", "TaskOOM", "container oom"),
        (r"OOMKilled\"? ?[:=] ?\"?true\b", r"\bTaskOOM event", r"\bcontainer oom [0-9a-f]{12}(?:[0-9a-f]{0,52} \((?:[^)\n]{0,400}?, )?name=(?P<process>[\w.-]{1,120}))?"),
        event("cgroup-oom-kill"),
        '            "OOMKilled": true,',
        ("container oom 0123456789abcdef (image=a, name=b)", {"process": "b"}),
    ),
    pattern(
        "batch-oom", "slurm",
        phrases(
            "oom_kill event|oom-kill event|OOM Killed|memory limit|Out Of Memory|OUT_OF_ME|TERM_MEMLIMIT|"
            "job killed: mem"
        ),
        (
            r"Detected (?P<count>\d+) oom[_-]kill event",
            r"slurmstepd: error: (?!Detected).{0,200}(?:memory limit|OOM Killed)",
            r"srun: error: .{0,200}: Out Of Memory",
            r"\bOUT_OF_ME(?:MORY|\+)",
            r"\bTERM_MEMLIMIT\b",
            r"\bPBS: job killed: mem ",
        ),
        event("slurm-oom-kill"),
        ("slurmstepd: error: Detected 2 oom_kill events in StepId=7.0. Some of the step tasks have been OOM Killed.", {"count": 2}),
        ("srun: error: node1: task 0: Out Of Memory", {"count": None}),
        "slurmstepd: error: Exceeded job memory limit at some point.",
    ),
)  # fmt: skip
SIGNALS: tuple[Pattern, ...] = (
    pattern(
        "bus-error", "libc",
        ("SIGBUS", "Bus error", "bus error", "exit code", "exit status", "exited with", "exitcode"),
        (
            r"\*\*\* SIGBUS",
            r"(?:received|killed by|terminated by|[Ss]ignal:?|with) \(?SIGBUS\b",
            r"Fatal Python error: Bus error",
            r"[Ss]ignal: Bus error",
            r"(?:^|: |\d +)Bus error(?: +\(core dumped\)|\s*$)",
            r"Unexpected bus error encountered in worker",
            _EXIT,
        ),
        event("bus-error"),
        "(RayWorker pid=41) *** SIGBUS received at time=1 on cpu 2 ***",
        "Fatal Python error: Bus error",
        "run.sh: line 3:    12 Bus error               (core dumped) vllm serve m",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by",
        "Worker VllmWorkerProcess pid 991 died, exit code: -7",
        "engine-1 exited with code 135",
    ),
    pattern(
        "segfault", "libc",
        phrases(
            "SIGSEGV|SIGILL|SIGFPE|Segmentation fault|Illegal instruction|Floating point exception|segfault at|"
            "Segfault encountered|Caught signal|trap divide error|trap invalid opcode|general protection"
        ),
        # arch/x86/kernel/traps.c: what is no page fault is reported as `traps: NAME[PID] ... ip:`
        (
            r"\*\*\* SIG(?:SEGV|ILL|FPE) received",
            r"Caught signal (?:4|8|11)\b",
            r"Fatal Python error: (?:Segmentation fault|Illegal instruction|Floating point exception)",
            r"(?:^|: |\d +)(?:Segmentation fault|Illegal instruction|Floating point exception)(?: +\(core dumped\)|\s*$)",
            r"(?P<process>[^\s\[]{1,64})\[(?P<pid>\d{1,9})\](?:: segfault at | (?:trap (?:divide error|invalid opcode)|general protection(?: fault)?) ip:)",
            r"Segfault encountered",
            r"(?:killed|terminated) by (?:signal:? )?(?:SIG(?:SEGV|ILL|FPE)|Segmentation fault)",
        ),
        event("segfault"),
        "*** SIGSEGV received at time=1 on cpu 2 ***",
        "[decode-1:77  :0:91] Caught signal 11 (Segmentation fault: invalid permissions)",
        ("[ 4.2] python3[77]: segfault at 10 ip 00007f sp 00007f error 4 in libcuda.so[7f+1]", {"pid": 77, "process": "python3"}),
        ("[ 4.2] traps: python3[77] trap divide error ip:7f2c sp:7ffd error:0 in libmath.so.3[7f2c+1e]", {"pid": 77, "process": "python3"}),
        ("traps: engine[9] general protection fault ip:55d1 sp:7ffc error:0 in engine[55+1]", {"pid": 9}),
        "run.sh: line 3:    12 Illegal instruction     (core dumped) vllm serve m",
    ),
    pattern(
        "slurm-job-limit", "slurm", ("MinMemoryNode=",),
        (r"\bMinMemoryNode=(?P<size>\d{1,9}(?:\.\d{1,3})?[KMGT]?)\b",),
        fact("container-limit", must=True),
        ("   MinMemoryNode=240G", {"value": 240 << 30}),
    ),
    pattern(
        # whose it is nobody can say who reads the line alone: it may tell that a kill is another's, and nothing else
        "told-limit", "kubernetes", ("limit ",),
        (r"\blimit (?:of |is |was )?(?P<size>[1-9]\d{0,3}[MGT]i)\b",),
        fact("told-limit", must=True),
        ("chat-14b (tp2, memory limit 96Gi) died at noon", {"value": 96 << 30}),
    ),
    pattern(
        "time-limit-reached", "slurm", ("DUE TO TIME LIMIT", "runtime time limit", "specified deadline"),
        (
            r"(?P<text>(?:JOB|STEP) \d{1,10}(?:\.\w{1,9})? ON \S{1,80} CANCELLED AT \S{1,30} DUE TO TIME LIMIT)",
            r"(?P<text2>[\w@.:-]{1,80}: Service reached runtime time limit)|(?P<text3>(?:Job|Pod) was active (?:on the node )?longer than (?:the )?specified deadline)",
        ),
        lambda row, match: {"topic": "time-limit-reached", "text": (match["text"] or match["text2"] or match["text3"])},
        ("slurmstepd: error: *** JOB 99120 ON n07 CANCELLED AT 2026-01-04T10:00:12 DUE TO TIME LIMIT ***", {"text": "JOB 99120 ON n07 CANCELLED AT 2026-01-04T10:00:12 DUE TO TIME LIMIT"}),
        ("chat.service: Service reached runtime time limit. Stopping.", {"text": "chat.service: Service reached runtime time limit"}),
        ("Pod was active on the node longer than the specified deadline", {"topic": "time-limit-reached"}),
        table="note",
    ),
    pattern(
        "slurm-job-signal", "slurm", ("ExitCode=0:",),
        (r"\bExitCode=0:(?P<signal>[1-9]\d?)\b",),
        lambda row, match: {"exit_code": -int(match["signal"])},
        ("   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:9", {"exit_code": -9}),
        table="process_exit",
    ),
    pattern(
        "audit-bus-error", "kernel", ("ANOM_ABEND", "type=1701 "),
        (rf"{_AUDIT}(?:SIGBUS|7)\b",),
        event("bus-error"),
        (
            'type=ANOM_ABEND msg=audit(1767225600.500:71): auid=4294967295 uid=0 gid=0 ses=4294967295 pid=431 comm="python3" exe="/usr/bin/python3.12" sig=7 res=1',
            {"pid": 431, "process": "python3", "t": 1767225600.5},
        ),
        ("type=ANOM_ABEND msg=audit(31/12/25 08:00:01.250:72): auid=unset uid=root pid=433 comm=python3 exe=/usr/bin/python3.12 sig=SIGBUS res=yes", {"pid": 433, "t": 1767168001.25}),
        (  # the kernel itself prints the number of the record's type
            'kernel: audit: type=1701 audit(1767225600.500:74): auid=4294967295 uid=0 gid=0 subj=unconfined pid=437 comm="VLLM::Worker_TP" exe="/usr/bin/python3.12" sig=7 res=1',
            {"pid": 437, "process": "VLLM::Worker_TP"},
        ),
    ),
    pattern(
        "core-bus-error", "kernel", ("SIGBUS ",),
        (rf"{_CORE}SIGBUS{_CORE_FILE}",),
        event("bus-error"),
        ("Tue 2026-01-06 09:38:57 UTC   2100  1000  1000 SIGBUS  missing  /usr/bin/python3.12   n/a", {"pid": 2100, "process": "/usr/bin/python3.12", "t": 1767692337.0}),
    ),
    pattern(
        "core-segfault", "kernel", ("SIGSEGV ", "SIGILL ", "SIGFPE "),
        (rf"{_CORE}SIG(?:SEGV|ILL|FPE){_CORE_FILE}",),
        event("segfault"),
        ("Tue 2026-01-06 04:11:40 UTC   1182  1000   100 SIGSEGV present  /usr/libexec/thumbnailer  1.9M", {"pid": 1182}),
    ),
    pattern(
        "audit-segfault", "kernel", ("ANOM_ABEND", "type=1701 "),
        (rf"{_AUDIT}(?:SIGSEGV|SIGILL|SIGFPE|4|8|11)\b",),
        event("segfault"),
        ('type=ANOM_ABEND msg=audit(1767225600.500:73): auid=4294967295 uid=0 pid=435 comm="php-fpm" exe="/usr/sbin/php-fpm" sig=11 res=1', {"pid": 435, "process": "php-fpm"}),
    ),
)  # fmt: skip
