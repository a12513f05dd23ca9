"""Bundles and files without any LLM server: what other programs, people and machines write.

`BUNDLES` are whole bundles (40 with their instances); `files_of_others(500)` are single files. Of none may a cause of a
server be told. Forms are those of the programs named, words and numbers are our own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import noise_beside as beside
from noise_beside import DAY, KINDS, Files, Scene, kill_report, utc
from noise_words import ADVICE, QUOTES

Text = Callable[[Scene], str]
TEXTS: dict[str, Text] = {}
MAY_1 = 1_777_600_800.0  # 2026-05-01 02:00 UTC


def text(path: str) -> Callable[[Text], Text]:
    """Lists a function as the writer of a file of this name."""

    def listed(function: Text) -> Text:
        TEXTS[path] = function
        return function

    return listed


def scene(seed: str) -> Scene:
    """A scene without a server."""
    rng = random.Random(seed)
    begin = MAY_1 + rng.randint(0, 60) * DAY
    return Scene({}, begin, begin + 3 * beside.HOUR, rng)


def _rows(s: Scene, count: int, step: float, form: str, lines: tuple[str, ...]) -> str:
    t, out = s.begin, []
    for _ in range(s.rng.randint(count, count * 3)):
        t += s.rng.uniform(0, step)
        out.append(utc(t, form) + s.rng.choice(lines).format(n=s.rng.randint(1, 99999), m=s.rng.randint(1, 99), h=s.hexes(8)))  # fmt: skip
    return "\n".join(out) + "\n"


# ---- logs of other programs


@text("postgresql.log")
def _postgres(s: Scene) -> str:
    return _rows(s, 30, 40, "%Y-%m-%d %H:%M:%S.112 UTC [4411] ", ("LOG:  checkpoint starting: time", "LOG:  checkpoint complete: wrote {n} buffers (1.1%); 0 WAL file(s) added", "ERROR:  canceling statement due to statement timeout", "FATAL:  sorry, too many clients already", "ERROR:  out of memory\nDETAIL:  Failed on request of size {n} in memory context \"ExprContext\".", "LOG:  server process (PID {n}) was terminated by signal 9: Killed", "LOG:  could not fork new process for connection: Cannot allocate memory", "LOG:  database system is ready to accept connections"))  # fmt: skip


@text("mysqld.log")
def _mysql(s: Scene) -> str:
    return _rows(s, 20, 90, "%Y-%m-%dT%H:%M:%S.110412Z ", ("0 [Note] [MY-012955] [InnoDB] Initializing buffer pool, total size = 128.000000M", "0 [ERROR] [MY-012681] [InnoDB] mmap({n} bytes) failed; errno 12", "0 [ERROR] [MY-012956] [InnoDB] Cannot allocate memory for the buffer pool", "{n} [Warning] [MY-010055] [Server] IP address '203.0.113.{m}' could not be resolved", "0 [System] [MY-010931] [Server] ready for connections. Version: '8.0.36'"))  # fmt: skip


@text("nginx-error.log")
def _nginx(s: Scene) -> str:
    return _rows(s, 30, 10, "%Y/%m/%d %H:%M:%S ", ("[error] 31#31: *{n} upstream timed out (110: Connection timed out) while reading response header from upstream, client: 203.0.113.{m}", "[warn] 31#31: *{n} a client request body is buffered to a temporary file", "[crit] 31#31: *{n} malloc(4096) failed (12: Cannot allocate memory)", "[error] 31#31: *{n} no live upstreams while connecting to upstream"))  # fmt: skip


@text("redis.log")
def _redis(s: Scene) -> str:
    return _rows(s, 20, 100, "1:M %d %b %Y %H:%M:%S.120 ", ("* {n} changes in 60 seconds. Saving...", "# Can't save in background: fork: Cannot allocate memory", "# WARNING Memory overcommit must be enabled!", "* Background saving started by pid {n}", "# OOM command not allowed when used memory > 'maxmemory'."))  # fmt: skip


@text("catalina.out")
def _java(s: Scene) -> str:
    return _rows(s, 20, 60, "%Y-%m-%d %H:%M:%S.220  ", ("INFO 1 --- [nio-8080-exec-{m}] o.s.web.servlet.DispatcherServlet : Completed initialization in {m} ms", "WARN 1 --- [nio-8080-exec-{m}] com.zaxxer.hikari.pool.HikariPool : HikariPool-1 - Thread starvation or clock leap detected", "ERROR 1 --- [nio-8080-exec-{m}] o.a.c.c.C.[dispatcherServlet] : Servlet.service() threw exception\njava.lang.OutOfMemoryError: Java heap space\n\tat java.base/java.util.Arrays.copyOf(Arrays.java:3745)\n\tat org.example.Export.run(Export.java:{m})", "ERROR 1 --- [pool-{m}] org.example.Cache : cache hit rate 0.0%, evicted {n} entries"))  # fmt: skip


@text("gc.log")
def _gc(s: Scene) -> str:
    return _rows(s, 40, 5, "[%Y-%m-%dT%H:%M:%S.100+0000]", ("[info][gc] GC({n}) Pause Young (Normal) (G1 Evacuation Pause) {n}M->{m}M(4096M) {m}.2ms", "[info][gc] GC({n}) Pause Full (G1 Compaction Pause) 4095M->4090M(4096M) {n}.1ms", "[info][gc] GC({n}) To-space exhausted"))  # fmt: skip


@text("kafka-server.log")
def _kafka(s: Scene) -> str:
    return _rows(s, 30, 20, "[%Y-%m-%d %H:%M:%S,101] ", ("INFO [GroupCoordinator 1]: Preparing to rebalance group billing in state PreparingRebalance (kafka.coordinator.group.GroupCoordinator)", "WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Error in response for fetch request", "ERROR Processor got uncaught exception. (kafka.network.Processor) java.lang.OutOfMemoryError: Direct buffer memory", "INFO [Log partition=orders-{m}] Deleting segments due to retention time"))  # fmt: skip


@text("spark.log")
def _spark(s: Scene) -> str:
    return _rows(s, 30, 9, "%y/%m/%d %H:%M:%S ", ("INFO TaskSetManager: Starting task {m}.0 in stage 3.0 (TID {n})", "INFO MemoryStore: Block broadcast_{m} stored as values in memory (estimated size {m}.0 KiB, free 366.2 MiB)", "WARN TaskMemoryManager: Failed to allocate a page (67108864 bytes), try again.", "ERROR YarnScheduler: Lost executor {m} on data-{m}: Container killed by YARN for exceeding memory limits.", "WARN BlockManager: Putting block rdd_{m}_7 failed due to exception java.lang.OutOfMemoryError: GC overhead limit exceeded."))  # fmt: skip


@text("train.log")
def _trainer(s: Scene) -> str:
    used = s.rng.uniform(20, 23.2)
    steps = "".join(f"{{'loss': {3 - n * 0.01:.4f}, 'grad_norm': {s.rng.random():.4f}, 'learning_rate': 1e-05, 'epoch': {n / 100:.2f}}}\n" for n in range(s.rng.randint(5, 60)))  # fmt: skip
    return f'Loading checkpoint shards: 100%|##########| 4/4 [00:10<00:00,  2.51s/it]\n{steps}Traceback (most recent call last):\n  File "/home/anna/train.py", line {s.rng.randint(20, 400)}, in <module>\n    loss.backward()\n  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward\n    torch.autograd.backward(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate {s.rng.randint(100, 900)}.00 MiB. GPU 0 has a total capacity of 23.53 GiB of which {23.4 - used:.2f} GiB is free. Including non-PyTorch memory, this process has {used:.2f} GiB memory in use. Of the allocated memory {used - 0.9:.2f} GiB is allocated by PyTorch, and 412.00 MiB is reserved by PyTorch but unallocated.\n'  # fmt: skip


@text("comfyui.log")
def _images(s: Scene) -> str:
    return f"Total VRAM 12282 MB, total RAM {s.rng.randint(16, 64) * 1000} MB\npytorch version: 2.6.0+cu124\nSet vram state to: NORMAL_VRAM\nDevice: cuda:0 NVIDIA GeForce RTX 4070\ngot prompt\nmodel weight dtype torch.float16, manual cast: None\n!!! Exception during processing !!! Allocation on device\nTraceback (most recent call last):\n  File \"/home/bo/ComfyUI/execution.py\", line {s.rng.randint(100, 500)}, in execute\n    output_data = get_output_data(obj, input_data_all)\ntorch.OutOfMemoryError: Allocation on device\n\nGot an OOM, unloading all loaded models.\nPrompt executed in {s.rng.randint(2, 90)}.21 seconds\n"  # fmt: skip


@text("journal.txt")
def _journal(s: Scene) -> str:
    return _rows(s, 40, 60, "%b %d %H:%M:%S laptop ", ("systemd[1]: Started Session {m} of User anna.", "NetworkManager[801]: <info>  [1777.{m}] dhcp4 (wlp3s0): state changed new lease", "kernel: usb 1-2: new high-speed USB device number {m} using xhci_hcd", "gnome-shell[2201]: JS ERROR: TypeError: this.actor is null", "systemd-oomd[712]: Killed /user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope due to memory pressure for /user.slice being 71.2% > 50.00% for > 20s with reclaim activity", "earlyoom[690]: mem avail:  {m} of 15900 MiB ( 9.11%), swap free:    0 of    0 MiB ( 0.00%)", "sshd[{n}]: Accepted publickey for anna from 203.0.113.{m} port 51022 ssh2", "CRON[{n}]: (root) CMD (run-parts /etc/cron.hourly)"))  # fmt: skip


@text("dmesg.txt")
def _dmesg(s: Scene) -> str:
    name = s.rng.choice(("thunderbird", "firefox", "chrome", "java", "steam", "blender", "Isolated Web Co"))
    lines = [f"[{s.rng.uniform(0, 9):12.6f}] {line}" for line in ("Linux version 6.8.0-71-generic (buildd@lcy02) #71-Ubuntu SMP", "Memory: 16012300K/16640000K available", "ACPI: PM-Timer IO Port: 0x1808", "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode")]  # fmt: skip
    return "\n".join([*lines, *(f"[{71000.5:12.6f}] {line}" for line in kill_report(s, name, None, 9000))]) + "\n"


@text("one-line-dmesg.txt")
def _killed(s: Scene) -> str:
    return f"[{s.rng.randint(1000, 99999)}.110210] Out of memory: Killed process {s.rng.randint(2000, 9000)} (thunderbird) total-vm:9120332kB, anon-rss:3120440kB, file-rss:0kB, shmem-rss:9120kB, UID:1000 pgtables:9102kB oom_score_adj:200\n"  # fmt: skip


@text("app.log")
def _app(s: Scene) -> str:
    return _rows(s, 5, 60, "%Y-%m-%d %H:%M:%S ", ("ERROR could not open map: Cannot allocate memory", "INFO tile {n} rendered in {m} ms", "WARN queue has {n} waiting jobs", "INFO cache: {m} hits, {n} misses", "ERROR worker {m} exited with code 137", "INFO worker {m} started"))  # fmt: skip


@text("apt-term.log")
def _apt(s: Scene) -> str:
    names = ("linux-image-6.8.0-71-generic", "libc6", "redis-server", "nvidia-driver-570", "earlyoom", "python3-torch")
    return f"Log started: {utc(s.begin, '%Y-%m-%d  %H:%M:%S')}\n(Reading database ... {s.rng.randint(100000, 400000)} files and directories currently installed.)\n" + "".join(f"Preparing to unpack .../{name}_1.{s.rng.randint(0, 99)}_amd64.deb ...\nUnpacking {name} ...\nSetting up {name} ...\n" for name in s.rng.sample(names, 4)) + "dpkg: error processing package python3-torch (--configure):\n cannot fork: Cannot allocate memory\n"  # fmt: skip


@text("pip.log")
def _pip(s: Scene) -> str:
    return "".join(f"{utc(s.begin, '%Y-%m-%dT%H:%M:%S')},{n:03d} Collecting {name}\n{utc(s.begin, '%Y-%m-%dT%H:%M:%S')},{n:03d}   Downloading {name}-{s.rng.randint(0, 9)}.{s.rng.randint(0, 20)}.0-py3-none-any.whl ({s.rng.randint(9, 900)} kB)\n" for n, name in enumerate(("numpy", "pandas", "vllm", "torch", "ray", "xformers"))) + "Killed\n"  # fmt: skip


@text("requirements.txt")
def _requirements(s: Scene) -> str:
    return "".join(f"{name}=={s.rng.randint(0, 9)}.{s.rng.randint(0, 30)}.{s.rng.randint(0, 9)}\n" for name in ("aiohttp", "numpy", "torch", "transformers", "vllm", "ray", "redis", "uvicorn"))  # fmt: skip


@text("npm-debug.log")
def _npm(s: Scene) -> str:
    return f"0 verbose cli /usr/bin/node /usr/bin/npm\n1 info using npm@10.2.{s.rng.randint(0, 9)}\n2 info using node@v20.11.1\n<--- Last few GCs --->\n[{s.rng.randint(100, 9999)}:0x5581]    81221 ms: Mark-Compact 2041.1 (2083.2) -> 2039.9 (2084.7) MB, 1121.1 / 0.0 ms  (average mu = 0.11) allocation failure; scavenge might not succeed\n<--- JS stacktrace --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0xb9a330 node::Abort() [node]\nnpm ERR! code 134\n"  # fmt: skip


@text("gradle-build.log")
def _gradle(s: Scene) -> str:
    return f"> Task :app:compileKotlin\n> Task :app:mergeDebugResources\nExpiring Daemon because JVM heap space is exhausted\nDaemon will be stopped at the end of the build after running out of JVM memory\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\nJava heap space\n\nBUILD FAILED in {s.rng.randint(1, 9)}m 12s\n"  # fmt: skip


@text("gcc-build.log")
def _gcc(s: Scene) -> str:
    return "".join(f"[{n}/{400}] Building CUDA object CMakeFiles/_C.dir/csrc/kernel_{n}.cu.o\n" for n in range(s.rng.randint(9, 40))) + "FAILED: CMakeFiles/_C.dir/csrc/attention.cu.o\nnvcc error   : 'cicc' died due to signal 9 (Kill signal)\nc++: fatal error: Killed signal terminated program cc1plus\nninja: build stopped: subcommand failed.\n"  # fmt: skip


@text("pytest.log")
def _pytest(s: Scene) -> str:
    return f"============================= test session starts ==============================\nplatform linux -- Python 3.12.3, pytest-8.3.2\ncollected {s.rng.randint(20, 900)} items\n\ntests/test_oom.py ..F.                                                  [ 11%]\n\n=================================== FAILURES ===================================\n______________________________ test_out_of_memory ______________________________\n\n    def test_out_of_memory():\n>       assert read('CUDA out of memory. Tried to allocate 20.00 MiB') == 1\nE       AssertionError: assert 2 == 1\n\ntests/test_oom.py:{s.rng.randint(9, 90)}: AssertionError\n=========================== 1 failed, 3 passed in 0.12s ========================\n"  # fmt: skip


@text("ruff.txt")
def _lint(s: Scene) -> str:
    return "".join(f"src/serve/{name}.py:{s.rng.randint(1, 900)}:{s.rng.randint(1, 80)}: {code}\n" for name, code in (("memory", "E501 Line too long (131 > 120)"), ("kv_cache", "F401 `torch` imported but unused"), ("preempt", "N806 Variable `OOM` in function should be lowercase"), ("worker", "B904 Within an `except` clause, raise exceptions with `raise ... from err`"))) + "Found 4 errors.\n"  # fmt: skip


@text("git-log.txt")
def _gitlog(s: Scene) -> str:
    subjects = ("Fix OOM when max_num_seqs is large", "Raise gpu_memory_utilization default to 0.92", "[Core] No available memory for the cache blocks: better message", "Preempt fewer requests", "Reduce memory leak in the cache of images", "Bump version")  # fmt: skip
    return "".join(f"commit {s.hexes(40)}\nAuthor: Dora <dora@example.org>\nDate:   {utc(s.begin - n * DAY, '%a %b %e %H:%M:%S %Y')} +0000\n\n    {subject}\n\n" for n, subject in enumerate(subjects))  # fmt: skip


@text("hs_err_pid.log")
def _jvm(s: Scene) -> str:
    return f"#\n# There is insufficient memory for the Java Runtime Environment to continue.\n# Native memory allocation (mmap) failed to map {s.rng.randint(10**7, 10**9)} bytes for committing reserved memory.\n# Possible reasons:\n#   The system is out of physical RAM or swap space\n# JRE version: OpenJDK Runtime Environment (17.0.9+9)\n"  # fmt: skip


# ---- machines


@text("free.txt")
def _free(s: Scene) -> str:
    return f"               total        used        free      shared  buff/cache   available\nMem:        {s.rng.randint(10**7, 9 * 10**7):8d}    {s.rng.randint(10**6, 9 * 10**6):8d}      120112       91220     2101220      310112\nSwap:        2097148     2097148           0\n"  # fmt: skip


@text("top.txt")
def _top(s: Scene) -> str:
    return f"top - {utc(s.begin, '%H:%M:%S')} up 41 days,  3:11,  2 users,  load average: 3.11, 2.90, 2.21\nTasks: {s.rng.randint(200, 500)} total,   2 running, 401 sleeping,   0 stopped,   1 zombie\nMiB Mem :  64211.3 total,   1201.1 free,  60112.2 used,   2898.0 buff/cache\nMiB Swap:   2048.0 total,      0.0 free,   2048.0 used.   3301.1 avail Mem\n\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n" + "".join(f"{s.rng.randint(500, 99999):7d} anna      20   0 {s.rng.randint(9, 90)}.1g  {s.rng.randint(1, 20)}.{s.rng.randint(0, 9)}g  90112 {state} {s.rng.uniform(0, 99):5.1f}  {s.rng.uniform(0, 30):4.1f} 101:11.22 {name}\n" for name, state in (("java", "S"), ("chrome", "S"), ("ffmpeg", "R"), ("nfsd", "D"), ("gnome-shell", "S")))  # fmt: skip


@text("ps-aux.txt")
def _ps(s: Scene) -> str:
    return "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n" + "".join(f"root     {s.rng.randint(1, 99999):7d}  0.{s.rng.randint(0, 9)} {s.rng.uniform(0, 9):4.1f} {s.rng.randint(9000, 9000000):7d} {s.rng.randint(900, 900000):6d} ?        {state}   May01   0:{s.rng.randint(10, 59)} {name}\n" for name, state in (("/sbin/init", "Ss"), ("[kworker/0:1-events]", "I"), ("[nvidia-modeset/]", "S"), ("/usr/bin/dockerd -H fd://", "Ssl"), ("postgres: checkpointer", "Ss"), ("[kswapd0]", "S"), ("python3 scraper.py", "D"), ("[rcu_preempt]", "I")))  # fmt: skip


@text("vmstat.txt")
def _vmstat(s: Scene) -> str:
    return "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n" + "".join(f" {s.rng.randint(0, 9)}  {s.rng.randint(0, 9)} {s.rng.randint(0, 99999):6d} {s.rng.randint(9000, 99999):6d}  11020 901220   {s.rng.randint(0, 9)}    0   {s.rng.randint(0, 900)}   120 1101 2201 {s.rng.randint(0, 50)} 10 40  0  0\n" for _ in range(12))  # fmt: skip


@text("gamer-nvidia-smi.txt")
def _gamer(s: Scene) -> str:
    rows = [(0, "NVIDIA GeForce RTX 3080", s.rng.randint(7000, 10100), 10240)]
    processes = "".join(f"|    0   N/A  N/A {pid:16d}    C+G   {name:38s} N/A      |\n" for pid, name in ((4112, "...Games\\Shooter\\shooter.exe"), (1201, "...crosoft\\Edge\\msedge.exe"), (988, "C:\\Windows\\explorer.exe")))  # fmt: skip
    return beside._smi(s, rows, "N/A", processes)


@text("lspci.txt")
def _lspci(s: Scene) -> str:
    return f"00:00.0 Host bridge: Example Corp Root Complex\n0{s.rng.randint(1, 9)}:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3080] (rev a1)\n\tMemory at f6000000 (32-bit, non-prefetchable) [size=16M]\n\tMemory at e0000000 (64-bit, prefetchable) [size=256M]\n\tKernel driver in use: nvidia\n"  # fmt: skip


@text("arcstats")
def _zfs(s: Scene) -> str:
    return f"13 1 0x01 147 39984 8512134123 {s.rng.randint(10**15, 10**16)}\nname                            type data\nhits                            4    {s.rng.randint(0, 99)}\nmisses                          4    {s.rng.randint(10**6, 10**9)}\nevict_skip                      4    120\nmemory_throttle_count           4    {s.rng.randint(0, 99)}\nprefetch_data_hits              4    0\narc_no_grow                     4    0\n"  # fmt: skip


@text("metrics.prom")
def _prom(s: Scene) -> str:
    return beside.exporters(s)["metrics-node-exporter.prom"].decode()


@text("redis-info.txt")
def _redis_info(s: Scene) -> str:
    return beside.redis_info(s)["redis-info.txt"].decode()


@text("meminfo")
def _meminfo(s: Scene) -> str:
    return f"MemTotal:       {s.rng.randint(8, 64) * 10**6} kB\nMemFree:          211020 kB\nMemAvailable:     301220 kB\nSwapTotal:             0 kB\nShmem:            912012 kB\nHugePages_Total:       0\nCommitted_AS:   {s.rng.randint(9, 99) * 10**6} kB\n"  # fmt: skip


@text("df.txt")
def _df(s: Scene) -> str:
    return f"Filesystem      Size  Used Avail Use% Mounted on\ntmpfs           1.6G  2.1M  1.6G   1% /run\n/dev/nvme0n1p2  468G  {s.rng.randint(100, 460)}G   12G  97% /\ntmpfs            64M   64M     0 100% /dev/shm\n"  # fmt: skip


# ---- clusters


@text("hpa.yaml")
def _hpa(s: Scene) -> str:
    return f"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: checkout-api\n  namespace: shop\nspec:\n  minReplicas: 2\n  maxReplicas: {s.rng.randint(4, 40)}\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    name: checkout-api\n  metrics:\n    - type: Resource\n      resource:\n        name: cpu\n        target:\n          type: Utilization\n          averageUtilization: 70\n"  # fmt: skip


@text("describe-hpa.txt")
def _describe_hpa(s: Scene) -> str:
    return beside.scaler_of_a_web_shop(s)["describe-hpa-checkout.txt"].decode()


@text("deployment.yaml")
def _deployment(s: Scene) -> str:
    return f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: {s.rng.randint(1, 9)}\n  selector:\n    matchLabels: {{app: web}}\n  template:\n    metadata:\n      labels: {{app: web}}\n    spec:\n      containers:\n        - name: web\n          image: registry.example.org/shop/web:1.{s.rng.randint(0, 99)}\n          command: [\"gunicorn\", \"--max-requests\", \"1000\", \"app:web\"]\n          resources: {{limits: {{memory: 512Mi, cpu: \"1\"}}}}\n          livenessProbe:\n            httpGet: {{path: /, port: 8080}}\n            periodSeconds: 2\n            failureThreshold: 1\n"  # fmt: skip


@text("events.txt")
def _events(s: Scene) -> str:
    return beside.probes_of_other_pods(s)["events-shop.txt"].decode()


@text("events-all.txt")
def _events_all(s: Scene) -> str:
    return beside.events_of_other_namespaces(s)["events-all-namespaces.txt"].decode()


@text("describe-pod.txt")
def _pod(s: Scene) -> str:
    return next(iter(beside.another_pod_oomkilled(s).values())).decode()


@text("pods.json")
def _pods(s: Scene) -> str:
    return beside.another_pod_oomkilled_json(s)["pods-shop.json"].decode()


@text("describe-node.txt")
def _node(s: Scene) -> str:
    return beside.node_without_gpus(s)["describe-node-cpu-node-12.txt"].decode()


@text("alerts.yaml")
def _alerts(s: Scene) -> str:
    return beside.alert_rules(s)["monitoring/alerts.yaml"].decode()


@text("kubelet.log")
def _kubelet(s: Scene) -> str:
    return _rows(s, 20, 30, "I%m%d %H:%M:%S.110211    1201 ", ('prober.go:107] "Probe failed" probeType="Readiness" pod="shop/web-{m}" containerName="web" probeResult="failure" output="HTTP probe failed with statuscode: 500"', 'kubelet.go:2453] "SyncLoop (PLEG): event for pod" pod="shop/web-{m}"', 'kuberuntime_container.go:779] "Killing container with a grace period" pod="shop/web-{m}" containerName="web" gracePeriod=30', 'eviction_manager.go:366] "Eviction manager: attempting to reclaim" resourceName="memory"'))  # fmt: skip


# ---- texts


@text("runbook.md")
def _runbook(s: Scene) -> str:
    return next(iter(beside.runbook(s).values())).decode()


@text("troubleshooting.rst")
def _manual(s: Scene) -> str:
    return next(iter(beside.documentation(s).values())).decode()


@text("chat.txt")
def _chat(s: Scene) -> str:
    return next(iter(beside.chat(s).values())).decode()


@text("chat.json")
def _chat_json(s: Scene) -> str:
    return next(iter(beside.chat_json(s).values())).decode()


@text("worker.py")
def _source(s: Scene) -> str:
    return next(iter(beside.engine_source(s).values())).decode()


@text("fix.patch")
def _patch(s: Scene) -> str:
    return next(iter(beside.patch(s).values())).decode()


@text("postmortem.md")
def _postmortem(s: Scene) -> str:
    return next(iter(beside.closed_incident(s).values())).decode()


@text("mail.mbox")
def _mail(s: Scene) -> str:
    quote = s.quotes(1)[0]
    return f"From bo@example.org {utc(s.begin, '%a %b %e %H:%M:%S %Y')}\nFrom: Bo <bo@example.org>\nTo: users@lists.example.org\nSubject: Re: [users] what does this mean?\nDate: {utc(s.begin, '%a, %d %b %Y %H:%M:%S +0000')}\nMessage-ID: <{s.hexes(12)}@example.org>\n\nOn Friday, Anna wrote:\n> Hello list,\n> a friend sees this:\n>\n> {quote}\n>\n> What is it?\n\nHard to say. {s.rng.choice(ADVICE)}\n\nBo\n"  # fmt: skip


@text("options.md")
def _options(s: Scene) -> str:
    return "# Options\n\n" + "\n".join(f"### `--{name}`\n\n{what}\n" for name, what in (("gpu-memory-utilization", "Share of a card's memory that the server may use. This option increases system memory footprint until the program exits."), ("max-num-seqs", "How many sequences run at once. Lower it if you run out of memory."), ("swap-space", "CPU memory per GPU. A process hangs in the driver if it is too large."), ("enable-prefix-caching", "Hit rate of 0 % means that nothing is reused."), ("preemption-mode", f"Old. {s.quotes(1)[0]}")))  # fmt: skip


@text("kernel-doc.rst")
def _kernel_doc(s: Scene) -> str:
    return f"=====================\nMemory Resource Group\n=====================\n\nWhen usage reaches the limit and cannot be reduced, the OOM killer is invoked in the group::\n\n    Memory cgroup out of memory: Killed process {s.rng.randint(1000, 9999)} (usemem) total-vm:1048576kB, anon-rss:524288kB, file-rss:0kB\n\nUserland can disable it by writing 1 to memory.oom_control. See oom_kill in memory.events.\n"  # fmt: skip


@text("readme.md")
def _readme(s: Scene) -> str:
    return f"# vllm-toolbox\n\nSmall scripts around vLLM. Not affiliated.\n\n## Install\n\n```\npip install vllm-toolbox\n```\n\n## FAQ\n\n**It says `{s.quotes(1)[0][:120]}`, what now?** {s.rng.choice(ADVICE)}\n\n**Does it leak memory?** We have not seen memory grow.\n"  # fmt: skip


@text("main.c")
def _c(s: Scene) -> str:
    return f'#include <stdio.h>\n#include <stdlib.h>\n\nint main(void) {{\n    void *p = malloc({s.rng.randint(10**6, 10**9)});\n    if (!p) {{\n        fprintf(stderr, "Cannot allocate memory\\n");\n        fprintf(stderr, "Out of memory: Killed process %d (%s) anon-rss:%lukB\\n", 1, "x", 2UL);\n        return 1;\n    }}\n    free(p);\n    return 0;\n}}\n'  # fmt: skip


@text("oom_test.go")
def _go(s: Scene) -> str:
    return f'package oom\n\nimport "testing"\n\nvar lines = []string{{\n\t"Memory cgroup out of memory: Killed process {s.rng.randint(100, 9999)} (java) total-vm:100kB, anon-rss:{s.rng.randint(100, 99999)}kB, file-rss:0kB",\n\t"{s.quotes(1)[0][:60].replace(chr(34), chr(39))}",\n}}\n\nfunc TestParse(t *testing.T) {{\n\tfor _, line := range lines {{\n\t\tif !Parse(line) {{\n\t\t\tt.Fatal(line)\n\t\t}}\n\t}}\n}}\n'  # fmt: skip


@text("script.sh")
def _shell(s: Scene) -> str:
    return f'#!/bin/bash\nset -eu\n# restarts the web server when it is out of memory\nif dmesg | grep -q "Out of memory: Killed process"; then\n  echo "oom, exit code 137"\n  systemctl restart web\nfi\nfor n in $(seq {s.rng.randint(2, 30)}); do curl -s localhost:8080/healthz || exit 1; done\n'  # fmt: skip


@text("notebook.ipynb")
def _notebook(s: Scene) -> str:
    quote = s.quotes(1)[0]
    return json.dumps({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# How to read messages\n", f"An example: {quote}\n"]}, {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}], "source": [f"line = {quote!r}\n", "print(len(line) > 0)\n"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)  # fmt: skip


@text("page.html")
def _html(s: Scene) -> str:
    return f"<!DOCTYPE html>\n<html><head><title>Out of memory - questions</title></head>\n<body>\n<h1>What does it mean?</h1>\n<p>My friend's server says</p>\n<pre><code>{s.quotes(1)[0]}</code></pre>\n<p>{s.rng.choice(ADVICE)}</p>\n<p>memory leak, oom, crash</p>\n</body></html>\n"  # fmt: skip


@text("sales.csv")
def _csv(s: Scene) -> str:
    return "date,product,requests,waiting,memory,used\n" + "".join(f"{utc(s.begin + n * DAY, '%Y-%m-%d')},DDR5 {s.rng.choice((16, 32))} GB,{s.rng.randint(1, 99)},{s.rng.randint(0, 9)},{s.rng.randint(16, 64)},{s.rng.randint(0, 9)}\n" for n in range(s.rng.randint(5, 90)))  # fmt: skip


@text("novel.txt")
def _novel(s: Scene) -> str:
    return ("The old machine in the cellar had run out of memory again, and nobody knew why. " + s.rng.choice(("It grew and grew.", "It was killed at midnight.", "A long prompt from the north was answered.")) + "\n\n") * s.rng.randint(2, 30)  # fmt: skip


@text("prompts.jsonl")
def _prompts(s: Scene) -> str:
    return beside.quoted_prompts(s)["eval/prompts.jsonl"].decode()


@text("access.log")
def _access(s: Scene) -> str:
    return beside.access_log_of_another_service(s)["nginx/access.log"].decode()


@text("requests.jsonl")
def _requests(s: Scene) -> str:
    return beside.requests_of_another_tenant(s)["checkout/requests.jsonl"].decode()


@text("terraform.tf")
def _terraform(s: Scene) -> str:
    return f'resource "aws_instance" "llm" {{\n  ami           = "ami-{s.hexes(8)}"\n  instance_type = "g5.{s.rng.choice((1, 2, 4, 12))}xlarge"\n  user_data     = "docker run --shm-size 1g registry.example.org/web"\n}}\n'  # fmt: skip


@text("sysctl.txt")
def _sysctl(s: Scene) -> str:
    return f"kernel.pid_max = 4194304\nvm.overcommit_memory = {s.rng.randint(0, 2)}\nvm.oom_kill_allocating_task = 0\nvm.panic_on_oom = 0\nvm.swappiness = {s.rng.randint(1, 100)}\nkernel.shmmax = 18446744073692774399\n"  # fmt: skip


@text("locale.po")
def _translations(s: Scene) -> str:
    return "".join(f'#: src/main.c:{s.rng.randint(1, 900)}\nmsgid "{en}"\nmsgstr "{de}"\n\n' for en, de in (("Out of memory", "Kein Speicher mehr"), ("Cannot allocate memory", "Speicher kann nicht belegt werden"), ("Killed", "Abgebrochen")))  # fmt: skip


def files_of_others(count: int) -> dict[str, bytes]:
    """So many files of other programs, each writer in turn with other numbers, words and lengths."""
    out: dict[str, bytes] = {}
    number = 0
    while len(out) < count:
        for path, write in TEXTS.items():
            if len(out) == count:
                break
            out[f"{number:02d}/{path}"] = write(scene(f"{path}/{number}")).encode()
        number += 1
    return out


# ---- whole bundles

_BUNDLES: dict[str, tuple[str, ...]] = {
    "autoscaler-of-a-web-shop": ("hpa.yaml", "describe-hpa.txt"),
    "only-an-autoscaler": ("describe-hpa.txt",),
    "web-pods": ("events.txt", "describe-pod.txt", "deployment.yaml"),
    "probes-of-a-web-page": ("events.txt",),
    "cluster-events": ("events-all.txt", "describe-node.txt", "kubelet.log"),
    "gamer": ("gamer-nvidia-smi.txt", "lspci.txt", "top.txt"),
    "only-nvidia-smi": ("gamer-nvidia-smi.txt",),
    "engine-source-tree": ("worker.py", "readme.md", "options.md", "fix.patch", "git-log.txt"),
    "engine-docs": ("options.md", "troubleshooting.rst", "runbook.md"),
    "runbooks": ("runbook.md", "postmortem.md"),
    "chats": ("chat.txt", "chat.json", "mail.mbox"),
    "mail": ("mail.mbox",),
    "notebook-and-page": ("notebook.ipynb", "page.html"),
    "mail-program-killed": ("one-line-dmesg.txt",),
    "laptop": ("dmesg.txt", "journal.txt", "meminfo", "free.txt", "top.txt"),
    "databases": ("postgresql.log", "mysqld.log", "redis.log", "redis-info.txt"),
    "postgres-alone": ("postgresql.log",),
    "map-service": ("app.log",),
    "java-service": ("catalina.out", "gc.log", "hs_err_pid.log"),
    "spark": ("spark.log", "kafka-server.log"),
    "trainer": ("train.log",),
    "image-generator": ("comfyui.log",),
    "builds": ("gcc-build.log", "npm-debug.log", "gradle-build.log"),
    "packages": ("apt-term.log", "pip.log", "requirements.txt"),
    "lint-and-tests": ("ruff.txt", "pytest.log"),
    "kernel-docs": ("kernel-doc.rst", "main.c", "oom_test.go"),
    "sosreport": ("ps-aux.txt", "vmstat.txt", "sysctl.txt", "df.txt", "meminfo", "lspci.txt", "journal.txt"),
    "monitoring": ("metrics.prom", "arcstats", "alerts.yaml"),
    "web-server": ("nginx-error.log", "access.log", "requests.jsonl"),
    "evaluation": ("prompts.jsonl", "sales.csv"),
    "infrastructure": ("terraform.tf", "script.sh", "locale.po"),
    "reading": ("novel.txt",),
}  # fmt: skip


def bundles() -> dict[str, Files]:
    """Forty bundles without a server: each of the kinds, and some of them a second time with other contents."""
    out: dict[str, Files] = {}
    for name, paths in _BUNDLES.items():
        out[name] = {path: TEXTS[path](scene(f"{name}/{path}")).encode() for path in paths}
    for name in ("web-pods", "cluster-events", "chats", "laptop", "trainer", "databases", "engine-docs"):
        out[f"{name}-2"] = {path: TEXTS[path](scene(f"{name}-2/{path}")).encode() for path in _BUNDLES[name]}
    out["empty-files"] = dict.fromkeys(("vllm.log", "dmesg.txt", "events.txt"), b"")
    return out


__all__ = ["KINDS", "QUOTES", "bundles", "files_of_others"]
