"""The machine and what was done to it: device errors, reboots, stops that were asked for, limits on a process, how large it is."""

from __future__ import annotations

import re

from oomdoc.ingest.base import Finish, Pattern, Row, pattern
from oomdoc.ingest.host_events.rows import event, fact, host_event
from oomdoc.units import GIB, KIB, MIB, parse_size, parse_time


def _process_limit(row: Row, match: re.Match[str]) -> Row | None:
    """An address-space limit: plain numbers are bytes, the shell's `ulimit -v` counts KiB."""
    kib = row.pop("kib", None)
    if kib:
        row["limit"] = f"{kib} kB"
    process = re.search(r"--pid[ =](\d{1,9})\b", match.string)
    if process:
        row["pid"] = int(process[1])
    row = host_event("process-limit", row, match)
    stamp = parse_time(match.string)
    if stamp is not None:
        row["t"] = stamp
    return row if row.get("limit_bytes") is not None else None


def _free(match: re.Match[str]) -> int | None:
    """The total of `free`. Without a unit it is that of `-g`, `-m` or none: hosts of servers have 4 GiB to 4 TiB."""
    printed = match["size"].replace(",", ".")
    if not printed.isdigit():
        return parse_size(printed, binary=True) or None
    number = int(printed)
    return number * (GIB if number < 4 * KIB else MIB if number < 4 * MIB else KIB) or None


def booted(printed: str) -> int | None:
    """Epoch seconds of a boot as `uptime -s`, `who -b` or `/proc/stat` print it; None for no time.

    >>> booted("2026-02-03 04:05"), booted("1770091506"), booted("yesterday")
    (1770091500, 1770091506, None)
    """
    if printed.isdigit():
        return int(printed)
    t = parse_time(printed if printed.count(":") > 1 else f"{printed}:00")
    return None if t is None else int(t)


def _removal(row: Row, match: re.Match[str]) -> Row:
    """An order to remove a pod, as far as it names pods."""
    return {"topic": "stop-asked", "value": None, "text": match.string[match.start() :].strip()[:300]}


PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "xid", "xid", ("NVRM: Xid",),
        (
            r"NVRM: Xid \((?:PCI:)?(?P<device>[^)]*)\): (?P<count>\d+)(?:, pid='?(?:(?P<pid>\d+)|[^',]*)'?)?"
            r"(?:, name=(?P<process>[^,\"]+))?",
        ),
        event("xid"),
        ("[ 9.1] NVRM: Xid (PCI:0000:41:00): 31, pid=797, name=python3, Ch 0000000a, intr 10000000. MMU Fault", {"count": 31, "pid": 797, "process": "python3"}),
        ("NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", {"count": 79, "pid": None, "device": "0000:65:00"}),
    ),
    pattern(  # the device plugin, which takes the device out of service (k8s-device-plugin, internal/rm/health.go)
        "xid-of-plugin", "xid", ("Xid=", "XID="),
        (r"\bX(?:id|ID)=(?P<count>\d{1,4}) on [Dd]evice=(?P<device>(?:GPU|MIG)-[0-9A-Fa-f-]{8,40})",),
        event("xid"),
        ("I0302 04:05:06.118204       1 health.go:190] XidCriticalError: Xid=48 on Device=GPU-0a1b2c3d-4e5f; marking device as unhealthy.", {"count": 48, "device": "GPU-0a1b2c3d-4e5f"}),
    ),
    pattern(
        # the kernel's word for a network card, its fabric's and the network managers'; a slot of PCI Express has a link as well, and is none
        "link-down", "network", ("ink down", "ink Down", "ink DOWN", "ink is down", "ink is Down", "ost carrier", "link disconnected", "state DOWN", "-> DOWN", "to DOWN"),
        (
            r"(?<![\w.()-])(?P<device>[A-Za-z][\w.-]{1,30})(?: \(\w{1,20}\))?: (?:NIC )?[Ll]ink (?:is )?(?:[Dd]own|DOWN)\b",
            r"(?<![\w.()-])(?P<device2>[A-Za-z][\w.-]{1,30}): Lost carrier\b|\bdevice \((?P<device3>[\w.-]{2,30})\): carrier: link disconnected",
            r"\b(?P<device4>(?:mlx|rdma|irdma|bnxt_re|qedr|hfi|ib)[\w.]{1,20})\b[^\n]{0,60}?\b[Pp]ort:? ?\d{1,2}\b[^\n]{0,20}\b(?:[Ss]tate[^\n]{0,30}|Link )\bDOWN\b(?! ?->)",
        ),
        event("link-down"),
        ("[ 77.1] mlx5_core 0000:31:00.1 rdma1: Link down", {"kind": "link-down", "device": "rdma1"}),
        ("Mar 02 09:00:07 n4 kernel: bnxt_en 0000:02:00.0 eth5: NIC Link is Down", {"device": "eth5"}),
        ("systemd-networkd[9]: rdma1: Lost carrier", {"device": "rdma1"}),
        ("NetworkManager[7]: <info> [1.2] device (eth5): carrier: link disconnected", {"device": "eth5"}),
        ("kernel: infiniband mlx5_2: port 1 state change ACTIVE -> DOWN", {"device": "mlx5_2"}),
        ("kernel: mlx5_core 0000:31:00.1: Port: 1 Link DOWN", {"device": "mlx5_core"}),
    ),
    pattern(
        "reboot", "systemd", ("reboot", "powering down", "systemd-shutdown"),
        (
            r"reboot: Restarting system",
            r"System is (?:rebooting|powering down)",
            r"system will (?:reboot|power off) now",
            r"has been rebooted, boot id",
            r"^reboot\s+system boot",
            r"systemd-shutdown\[1\]",
        ),
        event("reboot"),
        "systemd-logind[611]: System is rebooting.",
        "Node node-b has been rebooted, boot id: 0a1b",
    ),
    pattern(
        "process-limit", "host", ("prlimit", "ulimit"),
        (
            r"\bprlimit\b[^\n]{0,200}?--as[= ](?P<limit>\d+)"
            r"(?:[^\n]*?virtual size[^:\n]{0,60}: (?P<size>\d+ bytes))?",
            r"\bulimit (?:-[SH]+ )?-[SH]*v (?P<kib>\d+)",
        ),
        _process_limit,
        (
            "prlimit --pid 44 --as=3000000000   # at 2026-11-19T04:00:01Z, virtual size before: 2900000000 bytes",
            {"kind": "process-limit", "pid": 44, "limit_bytes": 3000000000, "bytes": 2900000000, "t": 1795060801.0},
        ),
        ("ulimit -v 4194304", {"kind": "process-limit", "limit_bytes": 4 << 30}),
    ),
    pattern(
        "process-limit-table", "host", ("Max address space", "virtual memory ", "address space limit"),
        (
            r"^\s*Max address space\s+(?P<limit>\d+)\s",
            r"^\s*virtual memory\s+\(kbytes, -v\)\s+(?P<kib>\d+)",
            r"^\s*AS\s+address space limit\s+(?P<limit2>\d+)\s",
        ),
        _process_limit,
        ("Max address space         3000000000           unlimited            bytes", {"kind": "process-limit", "limit_bytes": 3000000000}),
        ("virtual memory              (kbytes, -v) 2048", {"limit_bytes": 2 << 20}),
    ),
    pattern(
        "host-memory", "host", ("MemTotal",),
        (r"(?P<node>Node \d+ )?MemTotal\w*[:=]\s*(?P<kib>\d+)(?: ?kB)?",),
        fact("host-size", lambda match: None if match["node"] else int(match["kib"][:15]) * KIB, must=True),
        ("MemTotal:       24684092 kB", {"value": 24684092 * KIB}),
    ),
    pattern(
        "boot-time", "host", ("uptime -s", "system boot", "btime "),
        (
            r"\buptime -s\b[ \t:=>→-]{1,8}(?P<when>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?)",
            r"\bsystem boot\s{1,8}(?P<when2>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?)",
            r"^\s*btime (?P<epoch>\d{10})\s*$",
        ),
        fact("boot-time", lambda match: booted(match["when"] or match["when2"] or match["epoch"]), must=True),
        ("uptime -s: 2026-02-03 04:05:06 (UTC)", {"value": 1770091506}),
        ("         system boot  2026-02-03 04:05", {"value": 1770091500}),
        ("btime 1770091506", {"value": 1770091506}),
    ),
    pattern(
        "page-cache-dropped", "host", ("drop_caches",),
        (r"\becho [123]\b.{0,20}(?:>|\btee\b) ?(?:-a )?/proc/sys/vm/drop_caches|\bvm\.drop_caches ?= ?[123]\b",),
        fact("page-cache-dropped"),
        "$ sudo sysctl vm.drop_caches=3",
        "root@n4:~# echo 1 | tee /proc/sys/vm/drop_caches",
    ),
    pattern(
        # a unit ended, and the service manager found processes of it that go on, at its end or at the next start
        "left-running", "supervisor", ("remains running after unit stopped", "Found left-over process"),
        (r"\bUnit process \d{1,9} \(.{1,60}\) remains running after unit stopped|\bFound left-over process \d{1,9} \(.{1,60}\) in control group while starting unit",),
        fact("orphan-process"),
        "systemd[1]: chat.service: Unit process 4411 (VLLM::EngineCor) remains running after unit stopped.",
        "systemd[1]: chat.service: Found left-over process 4411 (VLLM::EngineCor) in control group while starting unit. Ignoring.",
    ),
    pattern(
        "stop-asked", "supervisor", ("systemctl", " stop ", "replicas=0", "systemd[1]: Stopping", "timed out. Killing"),
        (
            r"(?:COMMAND=\S{0,40}/|^\s*(?:\S{0,60} ?[$#%] |[\d*,/ -]{9,40}(?:root )?)?(?:sudo )?)systemctl (?:--user )?stop \S",
            r"(?:COMMAND=\S{0,40}/|^\s*(?:\S{0,60} ?[$#%] |[\d*,/ -]{9,40}(?:root )?)?(?:sudo )?)(?:docker|podman|nerdctl)(?: compose)? stop\b",
            r"^\s*(?:\S{0,60} ?[$#%] |[\d*,/ -]{9,40}(?:root )?)?(?:kubectl|oc|k) (?:-n \S+ )?scale\b.{0,120}--replicas=0\b",
            r"^(?:.{0,60}systemd\[1\]: )?Stopping \S{0,30}(?:llm|inference|engine)\S{0,30}\.service\b",
            # of any unit: it was to end, and did not in the time that it was given
            r"^(?:.{0,60}systemd\[1\]: )?\S{1,60}\.service: State 'stop-sig\w{1,8}' timed out\. Killing\b",
        ),
        fact("stop-asked"),
        "sudo[77]: ana : TTY=pts/1 ; PWD=/root ; USER=root ; COMMAND=/usr/bin/systemctl stop llm.service",
        "$ docker compose stop vllm",
        "0 20 * * 5 kubectl -n ai scale deploy/llm --replicas=0",
        "systemd[1]: Stopping vllm.service - vLLM server...",
        "systemd[1]: chat.service: State 'stop-sigterm' timed out. Killing.",
    ),
    # the cluster's own word for a pod that is to go: to the kubelet, or of a drain
    pattern(
        "pod-removed", "supervisor", ("SyncLoop", "evict"),
        (
            r"\"SyncLoop DELETE\" source=\"api\" pods=\[|\bSyncLoop \(DELETE, \"api\"\): ",
            r"^(?:\S{0,60} )?evicting pod \S+/\S+",
        ),
        Finish("note", {"topic": "stop-asked"}, _removal),
        ('kubelet[77]: I0102 03:04:05.6    77 kubelet.go:2441] "SyncLoop DELETE" source="api" pods=["ai/chat-0"]', {"topic": "stop-asked"}),
        ("evicting pod ai/chat-0", {"text": "evicting pod ai/chat-0"}),
        ('kubelet.go:1800] SyncLoop (DELETE, "api"): "chat-0_ai(0a1b)"', {"text": 'SyncLoop (DELETE, "api"): "chat-0_ai(0a1b)"'}),
    ),
    pattern(
        "unit-started", "supervisor", ("systemd[1]: Start",),
        (r"^(?:.{0,60}systemd\[1\]: )?Start(?:ed|ing) \S{1,60}\.service\b",),
        fact("unit-started"),
        "Mar 02 09:00:07 n4 systemd[1]: Started vllm.service - vLLM server.",
    ),
    pattern(
        "ended-orderly", "supervisor", ("Deactivated successfully", "Result=success", "shutdown complete"),
        (
            r"^(?:.{0,60}systemd\[1\]: )?\S{0,30}(?:llm|inference|engine)\S{0,30}\.service: Deactivated successfully",
            r"^\s*Result=success\s*$",
            r"^(?:INFO:\s+)?Application shutdown complete",
        ),
        fact("ended-orderly"),
        "systemd[1]: vllm.service: Deactivated successfully.",
        "Result=success",
        "INFO:     Application shutdown complete.",
    ),
    pattern(
        "host-memory-free", "host", ("Mem:  ", "Speicher:  ", "Memoria:  "),
        (
            r"^(?:Mem|Speicher|Memoria): {2,}(?P<size>\d{1,12}(?:[.,]\d+)?(?:[KMGT]i?)?) {2,}[\d.,]+(?:[KMGT]i?|B)? {2,}[\d.,]+(?:[KMGT]i?|B)?(?: {2,}|\s*$)",
        ),
        fact("host-size", _free, must=True),
        ("Mem:           125Gi        66Gi        21Gi       0.4Gi        37Gi        58Gi", {"value": 125 * GIB}),
        ("Speicher:       62Gi        41Gi       3,1Gi       0,4Gi        18Gi        20Gi", {"value": 62 * GIB}),
        ("Mem:            105           3          39           0          63         101", {"value": 105 * GIB}),
        ("Mem:          64216       41022        1200         104       21993       22412", {"value": 64216 * MIB}),
        ("Mem:       65757184    42006528     1228800      106496    22521856    22949888", {"value": 65757184 * KIB}),
    ),
)  # fmt: skip
