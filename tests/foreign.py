"""Files of other programs: logs, tables, listings and documents in which nothing tells of a server of language models.

`FILES` are made here, a few hundred of them, each with its own numbers: what Hadoop, Spark, web servers, databases, package managers,
builds, monitors and kernels write. With the sources and pages of this project they are a bundle that has to give no row in any table.

`python tests/foreign.py FOLDER...` reads every file below some folders and prints the rows that it gave.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from oomdoc import ingest
from oomdoc.intake.binary import binary_form
from oomdoc.intake.scan import Chunk

ROOT = Path(__file__).parents[1]
_ABOUT = frozenset(("problem", "lookalike", "column_reading", "source"))
"""Tables that say something of the reading and nothing of a server."""

Make = Callable[[random.Random], str]


def _stamp(at: random.Random, n: int) -> str:
    return f"2026-{at.randint(1, 12):02}-{at.randint(1, 28):02} {n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"


def _log(*shapes: str) -> Make:
    """A log whose lines have these shapes in turn: `{t}` a stamp, `{n}` a number, `{m}` a larger one, `{f}` a fraction, `{w}` a word."""

    def make(at: random.Random) -> str:
        start = at.randint(0, 80_000)
        fill = lambda: {"n": at.randint(1, 99), "m": at.randint(1000, 900_000), "f": round(at.random() * 100, 2), "w": at.choice(("alpha", "node-7", "orders", "eu-west", "cache", "worker", "batch", "index"))}  # noqa: E731  # fmt: skip
        lines = [at.choice(shapes).format(t=_stamp(at, start + 7 * n), **fill()) for n in range(at.randint(6, 60))]
        return "\n".join(lines) + "\n"

    return make


def _table(header: str, row: str, rule: str = "") -> Make:
    """A table with this header, rows of this shape, and a rule between them."""

    def make(at: random.Random) -> str:
        body = _log(row)(at).splitlines()
        return "\n".join([header, *([rule] if rule else []), *body]) + "\n"

    return make


MAKERS: dict[str, Make] = {
    "hadoop-nodemanager.log": _log("{t},{n} INFO org.apache.hadoop.yarn.server.nodemanager.containermanager.monitor.ContainersMonitorImpl: Memory usage of ProcessTree {m} for container-id container_{m}_01_0000{n}: {f} MB of {n} GB physical memory used; {f} GB of 2.1 GB virtual memory used", "{t},{n} WARN org.apache.hadoop.hdfs.DFSClient: Slow ReadProcessor read fields took {m}ms (threshold=30000ms)", "{t},{n} INFO BlockStateChange: BLOCK* addStoredBlock: 10.0.{n}.2:50010 is added to blk_{m} size {m}"),
    "spark-executor.log": _log("26/03/{n} 10:11:12 INFO MemoryStore: Block broadcast_{n} stored as values in memory (estimated size {f} KiB, free {f} MiB)", "26/03/{n} 10:11:12 INFO BlockManagerInfo: Added rdd_{n}_{n} in memory on node-7:4{m} (size: {f} MiB, free: {f} GiB)", "26/03/{n} 10:11:13 WARN TaskSetManager: Lost task {n}.0 in stage {n}.0 (TID {m}) (10.0.0.7 executor {n}): ExecutorLostFailure", "26/03/{n} 10:11:14 INFO Executor: Finished task {n}.0 in stage {n}.0 (TID {m}). {m} bytes result sent to driver"),
    "nginx-access.log": _log('10.0.{n}.7 - - [12/Mar/2026:10:11:12 +0000] "GET /static/{w}.css HTTP/1.1" 200 {m} "-" "Mozilla/5.0"', '10.0.{n}.7 - {w} [12/Mar/2026:10:11:13 +0000] "POST /api/{w} HTTP/1.1" 503 {n} "-" "curl/8.5"'),
    "nginx-error.log": _log("2026/03/12 10:11:12 [error] 12#12: *{m} upstream timed out (110: Connection timed out) while reading response header from upstream, client: 10.0.0.{n}, server: shop.example", "2026/03/12 10:11:12 [warn] 12#12: *{m} a client request body is buffered to a temporary file /var/cache/{w}/{m}"),
    "postgres.log": _log("{t} UTC [{m}] LOG:  checkpoint complete: wrote {m} buffers ({f}%); 0 WAL file(s) added, {n} removed; write={f} s, sync={f} s, total={f} s", "{t} UTC [{m}] ERROR:  canceling statement due to statement timeout", "{t} UTC [{m}] LOG:  duration: {f} ms  statement: SELECT * FROM {w} WHERE id = {m}", "{t} UTC [{m}] LOG:  temporary file: path \"base/pgsql_tmp/{m}\", size {m}"),
    "redis.log": _log("{m}:M 12 Mar 2026 10:11:12.{n} * {m} changes in 60 seconds. Saving...", "{m}:C 12 Mar 2026 10:11:12.{n} * Fork CoW for RDB: current {n} MB, peak {n} MB, average {n} MB", "{m}:M 12 Mar 2026 10:11:12.{n} # WARNING Memory overcommit must be enabled!"),
    "java-gc.log": _log("[{t}][gc] GC({n}) Pause Young (Normal) (G1 Evacuation Pause) {n}M->{n}M({m}M) {f}ms", "[{t}][gc,heap] GC({n}) Eden regions: {n}->0({n})", "[{t}][safepoint] Safepoint \"Cleanup\", Time since last: {m} ns"),
    "kafka.log": _log("[{t},{n}] INFO [GroupCoordinator {n}]: Preparing to rebalance group {w} in state Stable with old generation {n}", "[{t},{n}] WARN [ReplicaManager broker={n}] Leader {n} failed to record follower's position {m}"),
    "elasticsearch.log": _log("[{t},{n}][WARN ][o.e.m.j.JvmGcMonitorService] [node-{n}] [gc][{m}] overhead, spent [{n}ms] collecting in the last [1s]", "[{t},{n}][INFO ][o.e.c.r.a.AllocationService] [node-{n}] Cluster health status changed from [YELLOW] to [GREEN]"),
    "apt-history.log": _log("Start-Date: {t}", "Commandline: apt-get install {w}", "Install: lib{w}{n}:amd64 (2.{n}.1-1, automatic)", "End-Date: {t}"),
    "pip.txt": _log("Collecting {w}=={n}.{n}", "  Downloading {w}-{n}.{n}-py3-none-any.whl ({n} kB)", "Installing collected packages: {w}, {w}", "Successfully installed {w}-{n}.{n}"),
    "make.txt": _log("[ {n}%] Building CXX object src/CMakeFiles/{w}.dir/{w}.cc.o", "src/{w}.cc:{n}:{n}: warning: unused variable 'x' [-Wunused-variable]", "make[2]: *** [src/{w}.o] Error 1", "g++: fatal error: Killed signal terminated program cc1plus"),
    "pytest.txt": _log("tests/test_{w}.py::test_{w}[{n}] PASSED    [ {n}%]", "tests/test_{w}.py::test_{w}[{n}] FAILED    [ {n}%]", "E       assert {n} == {m}", "======= {n} failed, {m} passed in {f}s ======="),
    "sshd.log": _log("Mar 12 10:11:12 web-{n} sshd[{m}]: Accepted publickey for {w} from 10.0.0.{n} port {m} ssh2", "Mar 12 10:11:13 web-{n} sshd[{m}]: Failed password for invalid user {w} from 10.0.0.{n} port {m}", "Mar 12 10:11:14 web-{n} CRON[{m}]: (root) CMD (run-parts /etc/cron.hourly)"),
    "terraform.txt": _log("aws_instance.{w}[{n}]: Still creating... [{n}s elapsed]", "aws_instance.{w}[{n}]: Creation complete after {n}s [id=i-{m}]", "Plan: {n} to add, {n} to change, 0 to destroy."),
    "git.txt": _log(" src/{w}.py | {n} +++++-----", "{n} files changed, {m} insertions(+), {n} deletions(-)", "Author: A <a@example.org>"),
    "training.txt": _log("Epoch {n}/90 loss {f} lr 0.00{n} images/s {m}", "val: top1 {f} top5 {f} time {f} s"),
    "trainer.jsonl": _log('{{"epoch": {n}, "loss": {f}, "learning_rate": 1e-5, "grad_norm": {f}, "step": {m}}}'),
    "orders.csv": _table("order_id,customer,amount,currency,status,created", "{m},{w},{f},EUR,shipped,{t}"),
    "sensors.csv": _table("time,sensor,temperature,humidity,pressure", "{t},{w},{f},{f},{m}"),
    "benchmark.md": _table("| compiler | size [KB] | build time | runs | result |", "| {w} {n} | {m} | {f} s | {n} | ok |", "|---|---|---|---|---|"),
    "features.md": _table("| feature | since | works | notes |", "| {w} | {n}.{n} | yes | see page {n} |", "|---|---|---|---|"),
    "iostat.txt": _table("Device            r/s     w/s     rkB/s     wkB/s  await  %util", "nvme{n}n1     {f}   {f}   {f}   {f}   {f}  {f}"),
    "zpool.txt": _table("NAME     SIZE  ALLOC   FREE  FRAG    CAP  DEDUP    HEALTH", "{w}{n}    {n}T   {n}T   {n}T   {n}%    {n}%  1.00x    ONLINE"),
    "queues.csv": _table("queue,messages_ready,messages_unacknowledged,consumers", "{w}.{n},{m},{n},{n}"),
    "services.txt": _table("NAME                TYPE        CLUSTER-IP     EXTERNAL-IP   PORT(S)    AGE", "{w}-{n}            ClusterIP   10.96.{n}.{n}     <none>        80/TCP     {n}d"),
    "prices.json": _table("[", '{{"sku": "{w}-{n}", "unit_price": {f}, "usage_quantity": {m}}},'),
    "sysctl.conf": _log("vm.{w}_ratio = {n}", "net.core.{w} = {m}", "# {w}: the default is {n}"),
    "site.conf": _log("worker_connections {m};", "keepalive_timeout {n};", "client_max_body_size {n}m;"),
    "compose.yaml": _table("services:", "  {w}{n}:\n    image: {w}:{n}.{n}\n    deploy: {{resources: {{limits: {{memory: {n}G}}}}}}"),
    "playbook.yaml": _table("- hosts: all\n  tasks:", "  - name: set {w} {n}\n    sysctl: {{name: vm.{w}, value: '{m}'}}"),
    "kernel-doc.rst": _table("Memory of {w}s\n==============\n\nThe kernel keeps a list of free pages for each zone. If an allocation fails, the reclaim path runs.\n", "- ``{w}_{n}``: the number of pages (default {m}). If you raise it, memory that is not used is kept back.\n  When the limit is exceeded, the task is killed by the out of memory killer."),
    "manual.txt": _table("NAME\n       {w} - keep things\n\nOPTIONS\n", "       --{w}-size=N\n              Use at most N MB of memory (default: {m}). For example, with {n} workers each gets {n} MB.\n"),
    "changelog.txt": _table("Changes\n=======\n", "* {n}.{n}.{n}: fixed a leak of memory in the {w} module; the {w} cache is {n} % smaller; a hang at shutdown is gone"),
    "meeting.txt": _log("We talked about the {w} budget, {m} EUR for {n} people, and the move to {w}.", "Next time: who orders the {n} chairs, and whether the {w} room is free.", "The old {w} was {n} years in use, and nobody wants to restart it."),
    "chat.txt": _log("[10:{n}] <ada> the {w} page is slow again, {n} s for the first byte", "[10:{n}] <bob> restarted {w}, it is at {n} % now", "[10:{n}] <ada> thanks"),
    "strace.txt": _log("openat(AT_FDCWD, \"/etc/{w}\", O_RDONLY|O_CLOEXEC) = {n}", "mmap(NULL, {m}, PROT_READ, MAP_PRIVATE, {n}, 0) = 0x7f{m}", "read({n}, \"\"..., {m}) = {m}"),
    "ping.txt": _log("64 bytes from 10.0.0.{n}: icmp_seq={n} ttl=64 time={f} ms"),
    "ab.txt": _log("Time per request:       {f} [ms] (mean)", "Transfer rate:          {f} [Kbytes/sec] received", "  {n}%    {m}", "Document Length:        {m} bytes"),
    "lsblk.txt": _table("NAME        MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS", "nvme{n}n1     259:{n}    0   {f}G  0 disk /srv/{w}"),
    "windows.txt": _log("{t} Information Service Control Manager {m} The {w} service entered the running state.", "{t} Warning Disk {n} An error was detected on device \\Device\\Harddisk{n} during a paging operation."),
}  # fmt: skip
EACH = 13
"""Files of each kind, every one with other numbers and another length."""


def files() -> Iterator[tuple[str, str]]:
    """Name and text of every file that is made here."""
    for name, make in MAKERS.items():
        for number in range(EACH):
            yield f"{number:02}-{name}", make(random.Random(f"{name} {number}"))


def own() -> Iterator[tuple[str, str]]:
    """The sources and pages of this project: they are full of messages of the engine, as text."""
    for folder, ends in (("src", ".py"), ("docs", ".md"), ("src", ".sql"), ("rules", ".toml")):
        for path in sorted((ROOT / folder).rglob(f"*{ends}")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def rows_of(name: str, data: bytes) -> Counter[str]:
    """The rows of evidence that a file gives, by table."""
    head = ingest.make_head(name, data)
    if binary_form(head.data) is not None or ingest.is_label(head) or ingest.is_program(head) is not None:
        return Counter()
    ingestor, _ = ingest.recognise(head)
    found: Counter[str] = Counter()
    for batch in ingest.read(ingestor, name, [Chunk(data, 1, True)]):
        if batch.table not in _ABOUT:
            found[batch.table] += batch.rows
    return found


def main(argv: list[str]) -> int:
    """Print what the files of some folders give."""
    count = total = 0
    listed = [(str(path), path.read_bytes()[: 1 << 20]) for folder in argv for path in sorted(Path(folder).rglob("*")) if path.is_file()]  # fmt: skip
    for name, data in listed or [(name, text.encode()) for name, text in (*files(), *own())]:
        count += 1
        if data and (found := rows_of(name, data)):
            total += sum(found.values())
            print(name, dict(found))
    print(f"{count} files, {total} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
