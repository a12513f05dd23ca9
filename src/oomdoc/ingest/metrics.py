"""Prometheus text as `/metrics` gives it, one scrape or several to a file: the series that matter for memory.

    # TYPE vllm:kv_cache_usage_perc gauge
    vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.8188976377952756

Kept are all `vllm:` series, DCGM's frame buffer and utilization, the memory of devices, processes and containers that other
exporters tell. `promtool tsdb dump`, series by series with the name among the labels, is read as well. Left out are histogram
buckets (`_bucket`, nine tenths of a scrape: sum and count stay) and the `_created` gauges, which are times. NaN and infinite
samples are left out as well: they say that nothing was measured.

The time of a scrape is the sample's own (milliseconds, rare), else that of the last comment or block line with a stamp
above it (which may name the server too: `## llm-a:8000/metrics`, told as label `instance`; so is what stands above each of several
blocks of the same series: `# replica 0`, `==> pod-b <==`), else a UTC stamp or ten digits of epoch seconds in the file name, else unknown. The labels of
`vllm:cache_config_info` are engine settings; they are told again only where they change.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import device_metrics
from oomdoc.ingest.base import Head, Rows, read_by
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.vocabulary import exporters, meanings
from oomdoc.ingest.vocabulary.quantity import read as read_list
from oomdoc.intake.cells import date
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_time, show_bytes

KIND = "metrics"

_KEPT = (
    "vllm:", "DCGM_FI_DEV_FB_", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "dcgm_fb_",
    "dcgm_gpu_utilization", "gpu_memory_used_bytes", "gpu_memory_total_bytes", "nvidia_",
    "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "namedprocess_namegroup_memory_bytes", "container_memory_", "prober_probe_total", "kube_pod_container_status_restarts_total", "node_memory_MemTotal_bytes", "node_boot_time_seconds", "container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total", *exporters(),
)  # fmt: skip
_BARE = (b"vllm:", b"DCGM_FI_DEV_")
_TYPED = tuple(f"# {kind} {name}".encode() for kind in ("HELP", "TYPE") for name in ("vllm:", "sglang:", "llamacpp:", "tgi_", "lmdeploy:", "DCGM_"))  # fmt: skip
_STAMPED = ("#", "=== ", "--- ", "==> ", "20")
_WANTED = (*_KEPT, *_STAMPED)
_DUMPED = '{__name__="'
_DUMP = regex(r'\{__name__="([A-Za-z_:][\w:]*)"(?:, ?|(?=\}))(.*)', re.S)
_DOCUMENTED = ("# HELP", "# TYPE", "# EOF", "# UNIT")
YEARS = (6.3e8, 7.3e9)  # 1990 to 2200: a stamp outside is none
CONFIG = ("vllm:cache_config_info", "vllm:cache_config")
"""Series whose labels are the engine's cache configuration."""
_FIGURES: Mapping[str, str] = read_list("names")["config_figures"]
_BRACES = r"\{(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*\}"
_NAME = regex(rf"([A-Za-z_:][\w:]*)({_BRACES})?[ \t]*")
# a stamp is milliseconds in Prometheus' own text, seconds in OpenMetrics, which also appends exemplars
_SAMPLE = regex(
    rf"([A-Za-z_:][\w:]*(?:{_BRACES})?)[ \t]+([^\s#]+)(?:[ \t]+(-?\d{{1,15}}(?:\.\d{{1,9}})?))?(?:[ \t]+#[ \t]*\{{.*)?[ \t\r]*"
)
_ABOUT = regex(
    r"[#=\-\s>]{2,8}(?:\$ )?(?:curl (?:-\w+ )*)?(?:(?:[a-z]{2,10}|\d[\d:TZ.+-]{3,34})[ @]{1,2}){0,4}(?:https?://)?([\w.-]{1,80}(?::\d{2,5})?)/metrics\b"
)
"""The line above a scrape that says of whom it is: `## llm-a:8000/metrics 11:30:00`, `# scrape 11:30:00Z llm-a:8000/metrics`."""
_BLOCKS = "vllm:kv_block_"
_HEADING = regex(r"(?:[#=>*-]{1,8}\s*)+(?P<said>[\w./:=,@\[\]() -]{1,100}?)\s*(?:[:#=<*-]*)\s*")
_MOMENT = regex(
    r"[\s@(]{0,4}(?:\b\d{4}-\d\d-\d\d[ T]{1,2})?\b\d?\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?[\s)]{0,4}"
)
_WORD = regex(r"[^\W\d_]+")
_PLACE = regex(r"[\w.-]+:\d{2,5}|\d{1,3}(?:\.\d{1,3}){3}|[a-z][a-z0-9.-]*-(?:[a-z0-9]{4,10}-[a-z0-9]{5}|\d{1,4})")
"""What servers are called where no word says that it is one: an address, a pod of a deployment or of a stateful set."""
_COUNTERS = ("_total", "_count", "_sum")
_SERVERS = frozenset(("stat.replica", "request.replica"))
_LAST_BUCKET = regex(r'^(vllm:\w+)_bucket(\{.*?),?le="\+Inf",?')
_SECONDS_BELOW = 1e11


class _Series(dict[str, "tuple[str, str | None] | tuple[()] | None"]):
    """Name and labels of series that were seen, since every scrape repeats them; () = left out, None = no series."""

    def __missing__(self, text: str) -> tuple[str, str | None] | tuple[()] | None:
        if len(self) >= 1 << 14:
            self.clear()
        match = _NAME.fullmatch(text)
        series: tuple[str, str | None] | tuple[()] | None = None
        if match:
            name = match[1]
            left_out = name.endswith("_created") or (name.startswith("nvidia_") and "memory" not in name)
            name = _exposed(name) if name.count(":") > 1 else name
            series = () if left_out else (exporters().get(name, name), match[2][1:-1] if match[2] else None)
        self[text] = series
        return series


def _exposed(name: str) -> str:
    """The engine's own name of a series that a recording rule of Prometheus folded; any other name as it is.

    >>> _exposed("vllm:num_requests_waiting:max5m"), _exposed("vllm:num_preemptions_total:rate5m")
    ('vllm:num_requests_waiting', 'vllm:num_preemptions_total:rate5m')
    """
    return next(
        (one.quantity.column[1:] for one in meanings(name) if one.told and one.quantity.column[:6] == ":vllm:"), name
    )


_SERIES = _Series()

_FILE_UTC = regex(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)T(\d\d)[:-]?(\d\d)[:-]?(\d\d)Z")
_FILE_EPOCH = regex(r"(?<!\d)(1\d{9})(?!\d)")


def time_of_file(path: str) -> float | None:
    """Epoch seconds that a file name, or else its folder's, tells.

    >>> time_of_file("run/metrics-20261120T204630Z.prom"), time_of_file("metrics-1710460860.prom"), time_of_file("m.txt")
    (1795207590.0, 1710460860.0, None)
    """
    for name in PurePosixPath(path).parts[:-3:-1]:
        if match := _FILE_UTC.search(name):
            return parse_time("{}-{}-{}T{}:{}:{}Z".format(*match.groups()))
        if match := _FILE_EPOCH.search(name):
            return float(match[1])
    return None


class Scrapes:
    """The state of one source: the time of the scrape at hand, and the settings that were told last."""

    def __init__(self, path: str) -> None:
        self.t = time_of_file(path)
        self.rows = Capped()
        self.instance: str | None = None
        self._owners: frozenset[str] = frozenset()
        self._configs: set[str] = set()
        self._devices = device_metrics.Devices()

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds."""
        data, first_line = chunk.whole()
        found: list[device_metrics.Sample] = []
        of_devices: list[device_metrics.Sample] = []
        # as text: `in` on bytes takes four times as long, and nine lines of ten are buckets that fall here
        text = data.decode("utf-8", "replace").split("\n")
        self._owners |= _owners_in(text)
        for number, line in [
            entry for entry in enumerate(text, first_line) if "_bucket{" not in entry[1] or entry[1].startswith(_BLOCKS)
        ]:
            if line.startswith(_DUMPED):
                line = _as_exposed(line)
            if "_bucket{" in line:
                if "+Inf" not in line:
                    continue
                line = _LAST_BUCKET.sub(
                    r"\1_count\2", line
                )  # where only buckets were kept the last of them is the count
            named, _, figure = line.rpartition(" ")
            series, t = _SERIES.get(named), self.t
            if series is None:  # not seen yet, or no series at all
                if not line.startswith(_WANTED):
                    continue
                if self._owners and (whose := _server(line)) in self._owners:
                    self.instance = whose
                if line.startswith(_STAMPED):
                    self._comment(line)
                    continue
                series = _SERIES[named]
            if series is None:
                match = _SAMPLE.fullmatch(line)  # a stamp behind the value, tabs, or no sample at all
                if match is None:
                    self.rows.problem(number, "no sample of a series", line[:400])
                    continue
                series, figure = _SERIES[match[1]], match[2]
                own = float(match[3] or 0.0)
                own = own if own < _SECONDS_BELOW else own / 1000
                t = own if YEARS[0] <= own < YEARS[1] else t
            if not series:
                continue
            name, labels = series
            if self.instance is not None and "instance=" not in (labels or ""):
                labels = f'{labels},instance="{self.instance}"' if labels else f'instance="{self.instance}"'
            try:
                value = float(figure)
            except ValueError:
                self.rows.problem(number, "no value of a series", line[:400])
                continue
            if not math.isfinite(value):
                continue
            if found and found[-1][1:] == (t, name, labels, value) and name.endswith("_count"):
                continue  # the last bucket has told it
            found.append((number, t, name, labels, value))
            tell_host(self.rows, self._configs, number, name, value)
            if name in PROCESS and t is not None and (owner := of_process(name, labels)) is not None:
                self.rows.add("process_memory", number, t=t, name=owner or None, resource="host", bytes=int(value))
            if name in device_metrics.NAMES:
                of_devices.append((number, t, name, labels, value))
            if name in CONFIG and labels is not None and labels not in self._configs and len(self._configs) < 1000:
                self._configs.add(labels)
                tell_config(self.rows, number, t, labels)
        self._devices.add(of_devices, self.rows)
        if found:
            columns = map(list, zip(*found, strict=True))
            yield Batch("metric", dict(zip(("line", "t", "name", "labels", "value"), columns, strict=True)))
        yield from self.rows.take()

    def close(self) -> Iterator[Batch]:
        """What the last scrape told of devices, and the problems that were left out."""
        self._devices.close(self.rows)
        yield from self.rows.close()

    def _comment(self, line: str) -> None:
        if not line.startswith(_DOCUMENTED):
            t = date(line[:200])
            self.t = t if t is not None else self.t
            about = _ABOUT.match(line)
            self.instance = about[1] if about else self.instance


def _heading(line: str) -> str | None:
    """What a line above a block of series says, without the moment at which it was scraped; None for any other line.

    >>> _heading("### engine 2"), _heading("==> pod-b <=="), _heading("# replica 0 (11:30:05)"), _heading("# 2026-06-03 11:30"), _heading("# TYPE up gauge")
    ('engine 2', 'pod-b', 'replica 0', None, None)
    """
    if line[:1] not in ("#", "=", "-") or line.startswith(_DOCUMENTED) or (found := _HEADING.fullmatch(line)) is None:
        return None
    said = _MOMENT.sub(" ", found["said"]).strip()
    return said if any(map(str.isalnum, said)) and parse_time(said) is None and not _DATE.fullmatch(said) else None


_DATE = regex(r"[\d\s./:-]+")


def _owners_in(lines: list[str]) -> frozenset[str]:
    """The servers that headings of blocks with the same series name: a scrape of several, one below the other.

    Two moments of one server have such headings, too (`# before`, `# run-2`). Where no word says that it is a server, or no digit
    which, a counter must be lower than in the block before, which no counter of one server is.
    """
    places = [
        at for at, line in enumerate(lines) if line[:1] in ("#", "=", "-") and line and _heading(line) is not None
    ]
    if not 2 <= len(places) <= _BLOCKS_MOST:
        return frozenset()
    held: dict[str, str] = {}  # a series, and the server under whose name it stood first
    last: dict[str, float] = {}
    owners: set[str] = set()
    fallen = False
    for at, end in zip(places, [*places[1:], len(lines)], strict=True):
        owner = _server(lines[at])
        for line in lines[at + 1 : end] if owner else ():
            named, _, figure = line.rpartition(" ")
            if not named or line[0] == "#":
                continue
            first = held.setdefault(named, owner)
            if first != owner:
                owners |= {first, owner}
            value = _finite(figure) if named.partition("{")[0].endswith(_COUNTERS) else None
            if value is not None:
                fallen |= value < last.get(named, value)
                last[named] = value
    return frozenset(owners) if fallen or all(map(_says_which, owners)) else frozenset()


_BLOCKS_MOST = 1000


def _server(line: str) -> str:
    """The server that a heading names: what has a word for one and says which, an address, a pod; "" without.

    >>> _server("# replica 0"), _server("### llm on pod-b, loaded"), _server("# agent-8b-7f6f9-4kq8m"), _server("# before the test")
    ('replica 0', 'pod-b', 'agent-8b-7f6f9-4kq8m', '')
    """
    said = _heading(line) or ""
    if _PLACE.fullmatch(said):
        return said
    parts = said.replace(",", " ").replace("(", " ").replace(")", " ").split()
    for part, after in zip(parts, [*parts[1:], ""], strict=False):
        words = _WORD.findall(part)
        if any(map(_is_server, words)):
            bare = words == [part.strip(":=")]
            return part if not bare else f"{part.strip(':=')} {after}" if after else ""
    return ""


def _is_server(word: str) -> bool:
    return any(match.quantity.id in _SERVERS for match in meanings(word.lower()))


def _says_which(owner: str) -> bool:
    """Whether it is one of several by its number or letter, under a word for a server: `replica 0`, `pod-b`, and not `server before`."""
    words = _WORD.findall(owner)
    return any(map(_is_server, words)) and (any(map(str.isdigit, owner)) or len(words[-1]) == 1)


def _as_exposed(line: str) -> str:
    """A line of `promtool tsdb dump` as an exporter would have written it; "" for a bucket.

    >>> _as_exposed('{__name__="vllm:x", engine="0", job="a, b"} 3 1795207590000'), _as_exposed('{__name__="up"} 1 1795207590000')
    ('vllm:x{engine="0", job="a, b"} 3 1795207590000', 'up{} 1 1795207590000')
    """
    found = _DUMP.match(line)
    if found is None:
        return line
    return "" if found[1].endswith("_bucket") else f"{found[1]}{{{found[2]}"


def kept_name(name: str) -> str | None:
    """Under which name a series is kept; None for one that does not matter.

    >>> kept_name("vllm:num_preemptions_total"), kept_name("tgi_queue_size"), kept_name("up"), kept_name("vllm:num_requests_running:max")
    ('vllm:num_preemptions_total', 'vllm:num_requests_waiting', None, 'vllm:num_requests_running')
    """
    # only of names that are kept a series is remembered: a scrape takes what was seen before for a series of ours
    series = _SERIES[name] if name.startswith(_KEPT) and not name.endswith("_bucket") else None
    return series[0] if series else None


def pasted(line: str) -> tuple[str, str | None, str] | None:
    """Name, labels and value of a line that is a sample of an engine's series, as somebody pasted it out of a scrape."""
    match = _SAMPLE.fullmatch(line.strip())
    name = match[1].partition("{")[0] if match else ""
    series = _SERIES[match[1]] if match and ":" in name and kept_name(name) else None
    return (series[0], series[1], match[2]) if match and series else None


_INSTANT = regex(
    rf"\s*(?:(?P<name>[A-Za-z_:][\w:]*)?(?P<labels>{_BRACES})? => ?)?(?P<value>[-+.\deE]+) @\[(?P<t>\d{{9,11}}(?:\.\d+)?)\]\s*"
)
_RANGE = regex(rf"\s*([A-Za-z_:][\w:]*(?:{_BRACES})?) =>\s*")
"""What stands above the samples of a range, a line each."""
_NAMED = regex(r"__name__=\"([\w:]{1,120})\"")
_CONSOLE = regex(rf"\s*(?P<labels>{_BRACES})[ \t]+(?P<value>[-+.\deE]+)\s*")
"""An answer of the console of Prometheus: the labels that tell the series apart, and its value."""
_ASKED = regex(r"\bvllm:\w{3,100}")


def answered(line: str, asked: str | None) -> tuple[str, str | None, str, float | None] | None:
    """Name, labels, value and time of a line that `promtool query instant` or the console of Prometheus, which tells no time, answered; `asked` names the series where the answer does not.

    >>> answered('{pod="a"} => 3 @[1793606400]', "vllm:num_requests_waiting")
    ('vllm:num_requests_waiting', 'pod="a"', '3', 1793606400.0)
    >>> answered('{__name__="vllm:num_requests_running"} => 4 @[1793606400]', "vllm:num_requests_waiting")[0]
    'vllm:num_requests_running'
    """
    if asked and line.lstrip()[:1] == "{" and (plain := _CONSOLE.fullmatch(line)):
        kept = kept_name(asked)
        return (kept, plain["labels"][1:-1], plain["value"], None) if kept else None
    match = _INSTANT.fullmatch(line) if " @[" in line else None
    asked, _, whose = (asked or "").partition("{")
    told = _NAMED.search(match["labels"] or "") if match else None
    kept = kept_name(match["name"] or (told[1] if told else asked) or "") if match else None
    if match is None or kept is None:
        return None
    labels = match["labels"][1:-1] if match["labels"] else "" if match["name"] or told else whose[:-1]
    return kept, labels or None, match["value"], float(match["t"])


def asked_in(line: str) -> str | None:
    """The series that a line which is no sample asks for; None where it names none, or several."""
    if " =>" in line and (above := _RANGE.fullmatch(line)):
        return above[1]
    names = set(_ASKED.findall(line)) if "vllm:" in line else set()
    return names.pop() if len(names) == 1 else None


def tell_config(rows: Rows, line: int, t: float | None, labels: str) -> None:
    """The settings that the labels of the cache configuration are."""
    for name, value in device_metrics.LABEL.findall(labels):
        if value in ("None", "") or name == "engine":
            continue
        rows.add("engine_flag", line, t=t, flag=name, value=value, origin="metrics")
        if name in _FIGURES:
            figure = _finite(value)
            if figure is not None:
                rows.add("engine_figure", line, t=t, name=_FIGURES[name], value=figure)


PROCESS = ("process_resident_memory_bytes", "namedprocess_namegroup_memory_bytes")
"""What a process has resident: of itself, as client libraries tell it, or of a group of processes, as process-exporter does."""
_OWNER = ("groupname", "process", "pod", "container", "instance", "job")


def of_process(name: str, labels: str | None) -> str | None:
    """Whose resident set a sample is; None for one of another quantity, "" for one that names nobody.

    >>> of_process("namedprocess_namegroup_memory_bytes", 'groupname="vllm serve",memtype="resident"'), of_process("process_resident_memory_bytes", None)
    ('vllm serve', '')
    """
    if name not in PROCESS:
        return None
    told = dict(device_metrics.LABEL.findall(labels or ""))
    if told.get("memtype", "resident") != "resident":
        return None
    return next((told[key] for key in _OWNER if told.get(key)), "")


_HOST_MEMORY = "node_memory_MemTotal_bytes"
_BOOTED = "node_boot_time_seconds"


def tell_host(rows: Rows, told: set[str], line: int, name: str, value: float) -> None:
    """The size of the host's memory and when it was started, which the node exporter tells in every scrape; `told` says which are known."""
    if name == _HOST_MEMORY and value > 0 and str(value) not in told:
        told.add(str(value))
        rows.add("note", line, topic="host-size", value=value, text=f"memory of the host: {show_bytes(value)}")
    if name == _BOOTED and value > 0 and str(value) not in told:
        told.add(str(value))
        rows.add("note", line, topic="boot-time", value=value, text=f"{_BOOTED} {value:.0f}")


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `metric`, settings from the labels of the cache configuration, and `problem` rows."""
    yield from read_by(Scrapes(path), chunks)


reading = Scrapes


_ROW = regex(
    r"(?:# (?:HELP|TYPE|UNIT|EOF)\b.*|#.*|[A-Za-z_:][\w:]*[\w](?:\{.*\})?[ \t]+(?:\d[\d.]*(?:e[+-]?\d+)?|[+-]?Inf|NaN|-\d[\d.]*)(?:[ \t]+-?[\d.]+)?(?:[ \t]+#[ \t]*\{.*)?[ \t\r]*)$"
)
_DECLARED = regex(r"# (?:TYPE \S+ (?:counter|gauge|histogram|summary|untyped|unknown|info|stateset)$|HELP \S+)")


def matches(head: Head) -> bool:
    """Four of five lines have the shape of a sample or comment, and one declares a series or is one that is kept."""
    if is_plain(head.data):
        return True
    lines = [_as_exposed(line) if line.startswith(_DUMPED) else line for line in head.lines if line.strip()]
    lines = [line for line in lines if line]
    if len(head.data) >= 64 << 10 or len(head.lines) >= 400:
        lines = lines[:-1] or lines  # the head may end inside of a line
    samples = [line for line in lines if not line.startswith("#")]
    if sum(1 for line in lines if _ROW.match(line)) < 0.8 * len(lines) or not any(_ROW.match(line) for line in samples):
        return False
    kept = tuple(name for name in _KEPT if name != "nvidia_")
    return any(_DECLARED.match(line) for line in lines) or any(
        (line.startswith(kept) and "{" in line) or line.startswith("vllm:") for line in samples
    )


@functools.lru_cache(maxsize=1)
def is_plain(data: bytes) -> bool:
    """The same by the first bytes of bare lines: a hundredth of the price, and a bundle may hold a thousand scrapes.

    It is asked twice of a source: such a one is no program text either, which takes three times as long to tell.
    """
    if not any(name in data for name in _BARE):
        return False
    lines = data.split(b"\n")
    samples = [line for line in lines if line.startswith(_BARE)]
    documented = sum(1 for line in lines if line[:1] == b"#" and line.startswith(_TYPED))
    return 2 * len(samples) > len(lines) and 10 * (len(samples) + documented) >= 9 * len(lines) and documented > 0
