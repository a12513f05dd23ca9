"""What the sample bundles are made of: a server's output, an allocator's books, a scheduler to run traffic through, renderers.

Nothing here knows a cause. Every number is worked out from sizes and rates, so that the books of a sample close the way a
real server's do, and no clock, locale or C library takes part: the same script gives the same bytes anywhere (draws use
additions and products only, never `log` or `exp`, whose last digit differs between machines).
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# ---- one server's output


def number(version: str) -> int:
    """A version as a number that compares: `0.10.2` is 10002."""
    major, minor, patch = (int("".join(c for c in part if c.isdigit())) for part in version.split(".")[:3])
    return major * 1_000_000 + minor * 1000 + patch


class Server:
    """The merged output of one vLLM server, in the record layout and with the process tags of its version.

    `go(seconds)` sets the clock (seconds since `start`); `log` writes a record, `say` what a process prints or writes to
    stderr without a record head, `bar` a progress bar repainted with carriage returns.
    """

    def __init__(
        self, version: str, start: str, tp: int = 1, pid: int = 1, v0: bool = False, as_json: bool = False
    ) -> None:
        self.version, self.v, self.tp, self.v0, self.as_json = version, number(version), tp, v0, as_json
        self.start = dt.datetime.fromisoformat(start)
        self.now = 0.0
        self.pids = {"api": pid, "core": pid + 171, **{f"w{rank}": pid + 238 + 7 * rank for rank in range(tp)}}
        self.out: list[str] = []
        self._glue = False

    def go(self, seconds: float) -> None:
        """Set the clock."""
        self.now = seconds

    @property
    def moment(self) -> dt.datetime:
        """The server's local time."""
        return self.start + dt.timedelta(seconds=self.now)

    def name(self, role: str) -> str:
        """The process tag's name, empty where the version writes none."""
        if self.v0:
            return "VllmWorkerProcess" if role.startswith("w") and role != "w0" else ""
        if role.startswith("w"):
            if self.tp == 1:
                return self.name("core")
            return f"VllmWorker rank={role[1:]}" if self.v < 10_002 else f"Worker_TP{role[1:]}"
        if self.v < 10_002:
            return ""
        return "APIServer" if role == "api" else "EngineCore" if self.v >= 18_001 else "EngineCore_DP0"

    def tag(self, role: str) -> str:
        """The tag as it stands in the file, colours included where the version always writes them."""
        name = self.name(role)
        if not name:
            return ""
        pid = self.pids["core" if role.startswith("w") and self.tp == 1 and not self.v0 else role]
        text = f"({name} pid={pid})"
        if self.v < 12_000:
            return f"\x1b[1;36m{text}\x1b[0;0m "
        return f"\x1b[0;36m{text}\x1b[0;0m " if self.v < 15_002 else f"{text} "

    def log(self, role: str, place: str, message: str, level: str = "INFO") -> None:
        """One record; its further lines repeat the head after CR LF, as the engine's formatter does."""
        if self.as_json:
            stamp = self.moment.strftime("%Y-%m-%d %H:%M:%S,") + f"{int(self.moment.microsecond / 1000):03d}"
            pid = self.pids["core" if role.startswith("w") and self.tp == 1 else role]
            self._put(json.dumps({
                "asctime": stamp, "levelname": level, "name": "vllm." + place.split(":")[0].removesuffix(".py"),
                "processName": self.name(role), "process": pid, "message": message}))  # fmt: skip
            return
        stamp = self.moment.strftime("%m-%d %H:%M:%S")
        head = f"{level} {stamp} {place}] " if self.v < 8_000 else f"{level} {stamp} [{place}] "
        tag = self.tag(role)
        self._put("\r\n".join(tag + head + line for line in message.split("\n")))

    def say(self, role: str, text: str) -> None:
        """Lines without a record head; up to 0.30.0 the process tag stands before them."""
        tag = self.tag(role) if self.v < 31_000 else ""
        for line in text.split("\n"):
            self._put(tag + line if line or not tag else line)

    def uvicorn(self, text: str, level: str = "INFO") -> None:
        """A line of the HTTP server: its own layout, no time."""
        if self.as_json:
            self._put(json.dumps({
                "asctime": self.moment.strftime("%Y-%m-%d %H:%M:%S,000"), "levelname": level, "name": "uvicorn.access",
                "processName": "APIServer", "process": self.pids["api"], "message": text}))  # fmt: skip
            return
        self.say("api", f"{level}:".ljust(10) + text)

    def access(self, client: str, path: str, status: int, method: str = "POST") -> None:
        """An access line."""
        words = {
            200: "OK",
            400: "Bad Request",
            404: "Not Found",
            500: "Internal Server Error",
            503: "Service Unavailable",
        }
        self.uvicorn(f'{client} - "{method} {path} HTTP/1.1" {status} {words[status]}')

    def bar(self, role: str, title: str, done: Sequence[int], of: int, rate: float, closed: bool = True) -> None:
        """A progress bar as tqdm repaints it; an unclosed one gets the next line of the file glued to its end."""
        tag = self.tag(role) if self.v < 31_000 else ""
        paints = []
        for step in done:
            share = step / of
            full = "█" * int(share * 10)
            left = "?" if step == 0 else clock((of - step) / rate)
            speed = "?it/s" if step == 0 else f"{rate:5.2f}it/s"
            paints.append(f"\r{title}: {share:4.0%}|{full:<10}| {step}/{of} [{clock(step / rate)}<{left}, {speed}]")
        self._put(tag + "".join(paints), end="\n" if closed else "")

    def shards(self, role: str, of: int, seconds: float, upto: int | None = None, step: int = 1) -> None:
        """The weight-loading bar, one line per repaint."""
        rate = of / seconds
        for k in range(0, (of if upto is None else upto) + 1, step):
            left = "?" if k == 0 else clock((of - k) / rate)
            speed = "?it/s" if k == 0 else f"{seconds / of:5.2f}s/it"
            self.say(
                role,
                f"Loading safetensors checkpoint shards: {k / of:4.0%} Completed | {k}/{of} [{clock(k / rate)}<{left}, {speed}]",
            )

    def error(self, role: str, place: str, first: str, stack: str) -> None:
        """An ERROR record with a traceback in it."""
        self.log(role, place, f"{first}\n{stack}", "ERROR")

    def _put(self, text: str, end: str = "\n") -> None:
        self.out.append(text + end)

    def text(self) -> str:
        """The whole output."""
        return "".join(self.out)


def clock(seconds: float) -> str:
    """Minutes and seconds as tqdm writes them."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


Frame = tuple[str, int, str, str]  # path below site-packages, line, function, code

PACKAGES = "/usr/local/lib/python3.12/dist-packages/"


def traceback(frames: Iterable[Frame], last: str, packages: str = PACKAGES) -> str:
    """A traceback: frames outermost first, then the final line."""
    lines = ["Traceback (most recent call last):"]
    for path, line, function, code in frames:
        lines.append(f'  File "{packages}{path}", line {line}, in {function}')
        lines.append(f"    {code}")
        if "=" in code and code.endswith(")"):
            value = code.split("= ", 1)[-1]
            lines.append("    " + " " * (len(code) - len(value)) + "^" * len(value))
    return "\n".join([*lines, last])


# ---- the books of the allocator


def size(amount: float) -> str:
    """Bytes as PyTorch prints them."""
    if amount <= KIB:
        return f"{int(amount)} bytes"
    for unit, name in ((KIB, "KiB"), (MIB, "MiB")):
        if amount <= unit * 1024:
            return f"{amount / unit:.2f} {name}"
    return f"{amount / GIB:.2f} GiB"


def oom_text(
    requested: float, total: float, free: float, allocated: float, unallocated: float, *, private: float = 0, device: int = 0,
    others: Sequence[tuple[int, float]] = (), own_pid: int | None = None, unseen: float = 0, modern: bool = False,
) -> str:  # fmt: skip
    """PyTorch's message; what the process holds follows from the rest, so that the books close.

    `unseen` is memory in the driver's hands; `own_pid` is how the process appears inside a container whose host pids
    NVML reports; `modern` is the wording since PyTorch 2.9.
    """
    own = total - free - unseen - sum(held for _, held in others)
    parts = [
        f"CUDA out of memory. Tried to allocate {size(requested)}. GPU {device} has a total capacity of {size(total)} of which {size(free)} is free. "
    ]
    parts += [f"Process {pid} has {size(held)} memory in use. " for pid, held in others]
    parts.append(
        f"Process {own_pid} has {size(own)} memory in use. "
        if own_pid
        else f"Including non-PyTorch memory, this process has {size(own)} memory in use. "
    )
    parts.append(f"Of the allocated memory {size(allocated)} is allocated by PyTorch, ")
    if private:
        parts.append(f"with {size(private)} allocated in private pools (e.g., CUDA Graphs), ")
    setting, link = ("PYTORCH_ALLOC_CONF", "docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf") if modern else (
        "PYTORCH_CUDA_ALLOC_CONF", "pytorch.org/docs/stable/notes/cuda.html#environment-variables")  # fmt: skip
    parts.append(
        f"and {size(unallocated)} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting {setting}=expandable_segments:True "
        f"to avoid fragmentation.  See documentation for Memory Management  (https://{link})"
    )
    return "".join(parts)


def memory_summary(
    rows: Sequence[tuple[str, Sequence[tuple[int, int, int, int]]]], ooms: int, retries: int, device: int = 0
) -> str:
    """`torch.cuda.memory_summary()`: each metric with (current, peak, allocated, freed) for all, large and small pool.

    Metrics named `... memory` are bytes, others counts; the `Oversize` rows have one line.
    """
    bar, rule = "|" + "=" * 75 + "|", "|" + "-" * 75 + "|"
    lines = [bar, "|" + f"PyTorch CUDA memory summary, device ID {device}".center(75) + "|", rule]
    lines.append("|" + f"CUDA OOMs: {ooms}".center(36) + "|" + f"cudaMalloc retries: {retries}".center(38) + "|")
    lines += [bar, "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |", rule]
    for index, (metric, pools) in enumerate(rows):
        in_bytes = metric.endswith("memory")
        for title, values in zip((metric, "      from large pool", "      from small pool"), pools, strict=False):
            cells = [
                (_bytes_cell(value, lead) if in_bytes else _count_cell(value, lead))
                for value, lead in zip(values, pools[0], strict=True)
            ]
            lines.append(f"| {title:<21} | " + " | ".join(cells) + " |")
        lines.append(bar if index == len(rows) - 1 else rule)
    return "\n".join(lines) + "\n"


def _bytes_cell(value: int, lead: int) -> str:
    unit = 0
    while lead >= 768 * 1024:
        value, lead, unit = value // 1024, lead // 1024, unit + 1
    return f"{value:6d} " + ("B  ", "KiB", "MiB", "GiB", "TiB")[unit]


def _count_cell(value: int, lead: int) -> str:
    unit = 0
    while lead >= 750 * 1000:
        value, lead, unit = value // 1000, lead // 1000, unit + 1
    return f"{value:7d} " + (" ", "K", "M")[unit] + " "


# ---- nvidia-smi


@dataclass(frozen=True)
class Card:
    """A device as nvidia-smi shows it; sizes in MiB. `procs` are (pid, name, MiB)."""

    used: int
    total: int
    util: int = 0
    procs: tuple[tuple[int, str, int], ...] = ()
    watts: int = 70
    cap: int = 350
    degrees: int = 34


def smi_table(
    when: str, model: str, cards: Sequence[Card], driver: str = "570.124.06", cuda: str = "12.8", kinds: str = "C"
) -> str:
    """The boxed default table, 91 columns (driver 550 and later)."""
    out = [when, "+" + "-" * 89 + "+"]
    out.append("|" + f" NVIDIA-SMI {driver:<22}Driver Version: {driver:<14} CUDA Version: {cuda:<9}".ljust(89) + "|")
    out.append("|" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+")
    out += [
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|",
    ]
    for index, card in enumerate(cards):
        bus = f"00000000:{0x17 + 0x22 * index:02X}:00.0"
        out.append(f"|{index:>4}  {model[:27]:<27}    On |" + f"   {bus} Off |" + "                    0 |")
        usage = f"{card.used}MiB /{card.total:>7}MiB"
        out.append(
            f"| N/A   {card.degrees}C    P0    {card.watts:>10}W /{card.cap:>5}W |"
            + f"{usage:>23} |"
            + f"{card.util:>7}%      Default |"
        )
        out.append("|" + " " * 41 + "|" + " " * 24 + "|" + "Disabled |".rjust(23))
        out.append("+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+")
    out += [
        "",
        "+" + "-" * 89 + "+",
        "| Processes:                                                                              |",
        "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |",
        "|        ID   ID                                                               Usage      |",
        "|" + "=" * 89 + "|",
    ]
    rows = [(index, *entry) for index, card in enumerate(cards) for entry in card.procs]
    for index, pid, name, used in rows:
        short = name if len(name) <= 38 else "..." + name[-35:]
        out.append(f"|{index:>5}   N/A  N/A {pid:>16}      {kinds}   {short:<38}{used:>6}MiB |")
    if not rows:
        out.append("|  No running processes found                                                             |")
    out.append("+" + "-" * 89 + "+")
    return "\n".join(out) + "\n"


# ---- traffic through a paged pool


@dataclass
class Ask:
    """A request as its client sent it. `cached` is the share of the prompt that an earlier turn left in the cache."""

    t: float
    tenant: str
    prompt: int
    output: int
    cached: float = 0.0
    patience: float = 600.0
    id: str = ""
    # what became of it
    first: float | None = None
    end: float | None = None
    status: int = 200
    made: int = 0
    preempted: int = 0
    hit: int = 0


@dataclass
class _Seq:
    ask: Ask
    todo: float  # prompt (and recomputed) tokens still to be prefilled
    have: float = 0.0  # tokens whose KV is in the pool
    blocks: int = 0


@dataclass(frozen=True)
class Stat:
    """One statistics interval of the engine."""

    t: float
    prompt: float
    generation: float
    running: int
    waiting: int
    used: float
    hit_rate: float
    preemptions: int  # so far


@dataclass
class Course:
    """What a run of traffic gave: statistics, finished requests in order of their end, counters at any time."""

    stats: list[Stat] = field(default_factory=list)
    done: list[Ask] = field(default_factory=list)
    live: list[Ask] = field(default_factory=list)  # unfinished when the run ended


def serve(
    asks: Sequence[Ask], *, blocks: int, until: float, prefill: float, decode: Callable[[int], float], seqs: int = 256, chunk: int = 2048,
    block: int = 16, interval: float = 10.0,
) -> Course:  # fmt: skip
    """Run requests through a scheduler with a block pool: continuous batching, chunked prefill, preemption by recomputation.

    `blocks` counts usable blocks, `prefill` is tokens a second of the whole engine, `decode(running)` tokens a second of one
    sequence. A sequence that needs a block when none is free throws out the youngest, which starts anew at the head of the
    queue. A client that waits longer than its patience goes away and frees its blocks.
    """
    step = 0.5
    course, waiting, running = Course(), deque[_Seq](), list[_Seq]()
    free, cursor, t = blocks, 0, 0.0
    prompts = generated = 0.0
    preemptions = 0
    looked: deque[tuple[int, int]] = deque(maxlen=1000)
    next_stat = interval

    def take(seq: _Seq, tokens: float) -> bool:
        """Make room for so many tokens of a sequence; False where the sequence itself was thrown out."""
        nonlocal free, preemptions
        need = -(-int(tokens + 0.999) // block) - seq.blocks
        while need > free:
            victim = running.pop()
            free += victim.blocks
            victim.todo, victim.have, victim.blocks = victim.ask.prompt + float(victim.ask.made), 0.0, 0
            victim.ask.preempted += 1
            preemptions += 1
            waiting.appendleft(victim)
            if victim is seq:
                return False
        free -= max(0, need)
        seq.blocks += max(0, need)
        return True

    def within(seq: _Seq, salt: int) -> float:
        """A moment inside the step just made, so that times do not fall on a grid."""
        late = (seq.ask.prompt * 7919 + seq.ask.output * salt) % 497 / 1000
        return max(round(t - late, 3), round(seq.ask.t + 0.041, 3))

    def leave(seq: _Seq, status: int) -> None:
        nonlocal free
        free += seq.blocks
        end = within(seq, 104_729)
        seq.ask.end, seq.ask.status = max(end, (seq.ask.first or 0) + 0.012 * seq.ask.made), status
        course.done.append(seq.ask)

    while t < until:
        t += step
        while cursor < len(asks) and asks[cursor].t <= t:
            waiting.append(_Seq(asks[cursor], float(asks[cursor].prompt)))
            cursor += 1
        budget, before = prefill * step, preemptions
        speed = decode(len(running)) * step
        for seq in list(running):
            if seq not in running:
                continue
            if seq.todo > 0:
                part = min(budget, seq.todo)
                if part > 0 and take(seq, seq.have + part):
                    budget -= part
                    seq.todo -= part
                    seq.have += part
                    if seq.todo <= 0.01:
                        seq.todo = 0.0
                        if seq.ask.first is None:
                            seq.ask.first = within(seq, 15_485_863)
                            prompts += seq.ask.prompt
            elif take(seq, seq.have + speed):
                gain = min(speed, seq.ask.output - seq.ask.made)
                carried = int(seq.have + gain) - int(seq.have)
                seq.have += gain
                seq.ask.made += carried
                generated += carried
                if seq.ask.made >= seq.ask.output or gain < 0.01:
                    seq.ask.made = seq.ask.output
                    running.remove(seq)
                    leave(seq, 200)
        while preemptions == before and waiting and len(running) < seqs and budget > 1:
            seq = waiting[0]
            fresh = seq.ask.first is None and seq.ask.preempted == 0
            warm = (
                seq.ask.cached if free > blocks * 0.12 else seq.ask.cached * 0.25
            )  # a full pool has evicted the older prefixes
            hit = int(seq.ask.prompt * warm) // block * block if fresh else 0
            part = min(budget, chunk, seq.todo - hit)
            if -(-int(hit + part + 0.999) // block) > free:
                break
            waiting.popleft()
            if fresh:
                looked.append((seq.ask.prompt, hit))
                seq.ask.hit = hit
            running.append(seq)
            seq.have, seq.todo = float(hit), seq.todo - hit
            take(seq, seq.have + part)
            budget -= part
            seq.todo -= part
            seq.have += part
            if seq.todo <= 0.01:
                seq.todo = 0.0
                if seq.ask.first is None:
                    seq.ask.first = within(seq, 15_485_863)
                    prompts += seq.ask.prompt
        for group in (running, waiting):
            for seq in [one for one in group if t - one.ask.t > one.ask.patience]:
                group.remove(seq)
                leave(seq, 499)
        if t >= next_stat - 1e-9:
            asked, hits = sum(a for a, _ in looked), sum(b for _, b in looked)
            course.stats.append(Stat(
                t, prompts / interval, generated / interval, len(running), len(waiting), (blocks - free) / blocks,
                hits / asked if asked else 0.0, preemptions))  # fmt: skip
            prompts = generated = 0.0
            next_stat += interval
    course.live = [seq.ask for seq in (*running, *waiting)]
    return course


def arrivals(rng: random.Random, begin: float, end: float, per_s: float) -> list[float]:
    """Times of arrival at a mean rate, in milliseconds."""
    times, t = [], begin + rng.random() / per_s
    while t < end:
        times.append(round(t, 3))
        t += (0.15 + 1.7 * rng.random()) / per_s
    return times


def stat_line(stat: Stat, version: str) -> str:
    """The periodic line in the wording of a version (V1)."""
    engine = "Engine 000: " if number(version) >= 8_005 else ""
    return (
        f"{engine}Avg prompt throughput: {stat.prompt:.1f} tokens/s, Avg generation throughput: {stat.generation:.1f} tokens/s, Running: {stat.running} reqs, "
        f"Waiting: {stat.waiting} reqs, GPU KV cache usage: {stat.used * 100:.1f}%, Prefix cache hit rate: {stat.hit_rate * 100:.1f}%"
    )


def stat_line_v0(stat: Stat) -> str:
    """The periodic line of V0."""
    return (
        f"Avg prompt throughput: {stat.prompt:.1f} tokens/s, Avg generation throughput: {stat.generation:.1f} tokens/s, Running: {stat.running} reqs, "
        f"Swapped: 0 reqs, Pending: {stat.waiting} reqs, GPU KV cache usage: {stat.used * 100:.1f}%, CPU KV cache usage: 0.0%."
    )


def live_log(
    server: Server, course: Course, begin: float, *, place: str, path: str = "/v1/chat/completions", health: float = 10, scrape: float = 30,
    until: float | None = None, refuse: Sequence[float] = (),
) -> None:  # fmt: skip
    """Write the log of a run of traffic: statistics, access lines, probes and scrapes in the order of time."""
    events: list[tuple[float, int, Callable[[], None]]] = []
    last = until if until is not None else (course.stats[-1].t if course.stats else 0)
    idle = False
    for stat in course.stats:
        busy = bool(stat.running or stat.waiting or stat.prompt or stat.generation)
        if not busy and idle:
            continue  # an idle interval goes to DEBUG after one line of zeros
        idle = not busy
        line = stat_line_v0(stat) if server.v0 else stat_line(stat, server.version)
        events.append((stat.t, 0, lambda line=line: server.log("api", place, line)))  # type: ignore[misc]
    for nth, ask in enumerate(course.done):
        if ask.end is not None and ask.status in (200, 499):
            client = f"192.0.2.{20 + nth * 7 % 5}:{33000 + nth * 977 % 27000}"
            events.append((ask.end, 1, lambda client=client: server.access(client, path, 200)))  # type: ignore[misc]
    for at in refuse:
        events.append((at, 1, lambda: server.access("192.0.2.23:41870", path, 400)))
    every = ((health, "192.0.2.1:51544", "/health"), (scrape, "192.0.2.40:40022", "/metrics"))
    for period, client, what in every:
        at = period
        while period and at <= last:
            events.append((at, 2, lambda client=client, what=what: server.access(client, what, 200, "GET")))  # type: ignore[misc]
            at += period
    for at, _, write in sorted(events, key=lambda event: event[:2]):
        if at <= last:
            server.go(begin + at)
            write()


# ---- metrics


def exposition(
    course: Course,
    t: float,
    *,
    model: str,
    blocks: int,
    block: int,
    utilization: float,
    max_len: int,
    started: float,
    caching: bool = True,
    tokens: int | None = None,
) -> str:
    """A scrape of `/metrics` at a moment of the run, shortened to the families that operators keep."""
    stats = [stat for stat in course.stats if stat.t <= t]
    now = stats[-1] if stats else Stat(0, 0, 0, 0, 0, 0.0, 0.0, 0)
    done = [ask for ask in course.done if ask.end is not None and ask.end <= t and ask.status == 200]
    begun = [ask for ask in (*course.done, *course.live) if ask.first is not None and ask.first <= t]
    queries, hits = sum(ask.prompt for ask in begun), sum(ask.hit for ask in begun)
    who = f'engine="0",model_name="{model}"'
    out: list[str] = []

    def family(name: str, kind: str, says: str, *samples: tuple[str, float]) -> None:
        out.append(f"# HELP {name} {says}")
        out.append(f"# TYPE {name} {kind}")
        out.extend(f"{sample} {_float(value)}" for sample, value in samples)

    def counter(name: str, says: str, value: float) -> None:
        family(f"vllm:{name}", "counter", says, (f"vllm:{name}_total{{{who}}}", value))
        family(f"vllm:{name}_created", "gauge", says, (f"vllm:{name}_created{{{who}}}", started + 0.75))

    def histogram(name: str, says: str, edges: Sequence[float], values: Sequence[float]) -> None:
        rows = [
            (
                f'vllm:{name}_bucket{{{who.split(",")[0]},le="{_float(edge)}",{who.split(",")[1]}}}',
                float(sum(v <= edge for v in values)),
            )
            for edge in edges
        ]
        rows.append((f'vllm:{name}_bucket{{{who.split(",")[0]},le="+Inf",{who.split(",")[1]}}}', float(len(values))))
        rows += [(f"vllm:{name}_count{{{who}}}", float(len(values))), (f"vllm:{name}_sum{{{who}}}", float(sum(values)))]
        family(f"vllm:{name}", "histogram", says, *rows)

    family(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory size in bytes.",
        ("process_resident_memory_bytes", 1.61e9 + 4096.0 * len(done)),
    )
    family(
        "process_start_time_seconds",
        "gauge",
        "Start time of the process since unix epoch in seconds.",
        ("process_start_time_seconds", started),
    )
    family(
        "vllm:num_requests_running",
        "gauge",
        "Number of requests in model execution batches.",
        (f"vllm:num_requests_running{{{who}}}", now.running),
    )
    family(
        "vllm:num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        (f"vllm:num_requests_waiting{{{who}}}", now.waiting),
    )
    family(
        "vllm:kv_cache_usage_perc",
        "gauge",
        "KV-cache usage. 1 means 100 percent usage.",
        (f"vllm:kv_cache_usage_perc{{{who}}}", now.used),
    )
    counter(
        "prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", queries if caching else 0
    )
    counter("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", hits if caching else 0)
    counter("num_preemptions", "Cumulative number of preemption from the engine.", now.preemptions)
    counter("prompt_tokens", "Number of prefill tokens processed.", queries)
    counter("generation_tokens", "Number of generation tokens processed.", sum(ask.made for ask in done))
    edges = (100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
    histogram("request_prompt_tokens", "Number of prefill tokens processed.", edges, [ask.prompt for ask in done])
    histogram(
        "request_generation_tokens", "Number of generation tokens processed.", edges[:7], [ask.output for ask in done]
    )
    waits = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160)
    histogram(
        "time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        waits,
        [round((ask.first or 0) - ask.t, 3) for ask in begun],
    )
    histogram(
        "e2e_request_latency_seconds",
        "Histogram of e2e request latency in seconds.",
        (*waits, 240, 480),
        [round((ask.end or 0) - ask.t, 3) for ask in done],
    )
    success = "vllm:request_success_total{" + who.replace(",", ',finished_reason="%s",') + "}"
    gone = sum(1 for ask in course.done if ask.status == 499 and ask.end is not None and ask.end <= t)
    family(
        "vllm:request_success",
        "counter",
        "Count of successfully processed requests.",
        (success % "stop", float(len(done))),
        (success % "abort", float(gone)),
    )
    pool = tokens if tokens is not None else (blocks + 1) * block
    family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig", (
        f'vllm:cache_config_info{{block_size="{block}",cache_dtype="auto",calculate_kv_scales="False",enable_prefix_caching="{caching}",engine="0",'
        f'gpu_memory_utilization="{utilization}",kv_cache_memory_bytes="None",kv_cache_size_tokens="{pool}",kv_cache_max_concurrency="{pool / max_len:.4f}",'
        f'num_cpu_blocks="None",num_gpu_blocks="{blocks + 1}",num_gpu_blocks_override="None",sliding_window="None"}}', 1.0))  # fmt: skip
    return "\n".join(out) + "\n"


def _float(value: float) -> str:
    """A number as the Prometheus client writes it."""
    return repr(float(value))


# ---- settings lines


def config_text(
    server: Server, model: str, max_len: int, *, dtype: str = "torch.bfloat16", quantization: str | None = None, eager: bool = False, served: str | None = None,
    graph_top: int = 512, kv: str = "auto", caching: bool = True,
) -> str:  # fmt: skip
    """The engine-config line in the keys of the version."""
    v = server.v
    top = range(graph_top, 256, -16) if v >= 11_001 else ()
    sizes = [*top, *range(256 if v >= 11_001 else graph_top, 0, -8), 4, 2, 1]
    word = (
        "Initializing an LLM engine"
        if server.v0 and v < 7_000
        else "Initializing a V0 LLM engine"
        if server.v0
        else "Initializing a V1 LLM engine"
    )
    pairs = [
        f"model={model!r}", "speculative_config=None", f"tokenizer={model!r}", "skip_tokenizer_init=False", "tokenizer_mode=auto", "revision=None",
        *(["override_neuron_config=None", "tokenizer_revision=None"] if v < 10_002 else ["tokenizer_revision=None"]), "trust_remote_code=False", f"dtype={dtype}",
        f"max_seq_len={max_len}", "download_dir=None", "load_format=" + ("LoadFormat.AUTO" if v < 10_002 else "auto"), f"tensor_parallel_size={server.tp}",
        "pipeline_parallel_size=1", *(["data_parallel_size=1"] if v >= 10_002 else []), *(["decode_context_parallel_size=1"] if v >= 18_001 else []),
        "disable_custom_all_reduce=False", f"quantization={quantization}", f"enforce_eager={eager}", f"kv_cache_dtype={kv}",
        *([] if v >= 31_000 else ["device_config=cuda"]), "seed=0", f"served_model_name={served or model}",
    ]  # fmt: skip
    if server.v0:
        pairs += [
            "num_scheduler_steps=1",
            "multi_step_stream_outputs=True",
            f"enable_prefix_caching={caching}",
            "chunked_prefill_enabled=True" if max_len > 32768 else "chunked_prefill_enabled=False",
            "use_async_output_proc=True",
            "mm_processor_kwargs=None",
        ]
        if v >= 6_005:
            pairs += [
                "pooler_config=None",
                'compilation_config={"splitting_ops":["vllm.unified_attention","vllm.unified_attention_with_output"],"candidate_compile_sizes":[],"compile_sizes":[],"capture_sizes":[256,248,240,232,224,216,208,200],"max_capture_size":256}',
            ]
    else:
        chunked = "enable_chunked_prefill=True" if v >= 11_001 else "chunked_prefill_enabled=True"
        pairs += [
            "observability_config=ObservabilityConfig(show_hidden_metrics_for_version=None, otlp_traces_endpoint=None, collect_detailed_traces=None)",
            f"enable_prefix_caching={caching}", chunked, "use_async_output_proc=True" if v < 11_000 else "enable_cudagraph_gc=False", "pooler_config=None",
            'compilation_config={"level":3,"backend":"","custom_ops":[],"splitting_ops":["vllm.unified_attention","vllm.unified_attention_with_output"],'
            f'"use_inductor":true,"compile_sizes":[],"cudagraph_mode":[2,1],"use_cudagraph":true,"cudagraph_capture_sizes":{json.dumps(sizes, separators=(",", ":"))},"max_capture_size":{graph_top}}}',
        ]  # fmt: skip
    return (
        f"{word} (v{server.version}) with config: "
        + ", ".join(pairs)
        + ("" if not server.v0 or v < 7_000 else ", use_cached_outputs=True")
    )


def banner(server: Server, model: str) -> None:
    """The start banner of 0.15.1 and later."""
    server.log("api", "utils.py:302" if server.v < 31_000 else "api_utils.py:347", (
        "\n       █     █     █▄   ▄█\n"
        f" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {server.version}\n"
        f"  █▄█▀ █     █     █     █  model   {model}\n"
        "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀\n"))  # fmt: skip


def routes(server: Server, place: str, shown: int = 9) -> None:
    """The list of routes and the HTTP server's start-up lines."""
    known = ("/openapi.json, Methods: HEAD, GET", "/docs, Methods: HEAD, GET", "/health, Methods: GET", "/load, Methods: GET", "/ping, Methods: POST, GET", "/tokenize, Methods: POST",
             "/v1/models, Methods: GET", "/version, Methods: GET", "/v1/chat/completions, Methods: POST", "/v1/completions, Methods: POST", "/v1/embeddings, Methods: POST")  # fmt: skip
    server.log("api", place, "Available routes are:")
    for route in known[:shown]:
        server.log("api", place, f"Route: {route}")
    server.uvicorn(f"Started server process [{server.pids['api']}]")
    server.uvicorn("Waiting for application startup.")
    server.uvicorn("Application startup complete.")
