"""Names of columns in tables that people keep themselves: [who + number] + quantity + unit + a rest, in any order.

    rss_gib_prefix_on            resident memory of the host in GiB, in the variant "prefix on"
    worker_tp1_rss_gib           the same, of worker tp1
    gpu3_mib                     memory in use on device 3
    mem_available_gib            what the host has left
    after POST /sleep MiB/GPU    memory in the state "after post sleep"
    minute, t_s, uptime_h        time from a beginning that nobody tells
    turn, round, step            an order
    running, requests_total      load, which goes with the sample

The vocabulary knows whole names; this grammar takes names apart that no list can hold, since what is compared (a flag, a release, a
process) stands in them. A word that is neither quantity, unit nor owner is the variant.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from oomdoc.ingest.setting_names import of_header
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.ingest.vocabulary.words import BYTES, TIME_UNITS, UNITS, in_english, named, word_set
from oomdoc.regexes import regex

MEMORY, TOTAL, TIME, ELAPSED, ORDINAL = "memory", "total", "time", "elapsed", "ordinal"
REQUESTS, RUNNING, STATE, WHO, SETTING, OUTCOME, FIGURE = "requests", "running", "state", "who", "setting", "outcome", "figure"  # fmt: skip


class Column(NamedTuple):
    """What the name of a column says; what it does not say is empty."""

    role: str
    resource: str = ""  # host, gpu, host-used, host-available, swap, page-cache, container
    unit: str = ""  # of bytes; "%" for a share of the whole
    seconds: float = 0.0  # of one unit of elapsed time
    who: str = ""
    gpu: int | None = None
    variant: str = ""
    state: str = ""
    setting: str = ""


_RESIDENT = word_set("rss resident vmrss uss pss anon anonymous maxrss")
_DEVICE = word_set("gpu gpus vram hbm fb framebuffer cuda device card npu nvml smi nvidia accelerator")
_HOST = word_set("host ram node system sys dram machine")
_GROUP = word_set("container containers pod pods cgroup docker")
_LEFT = word_set("available avail free unused")
_IN_USE = word_set("used usage use mem memory occupied held consumed inuse set")
_SUM = word_set("total limit capacity max size installed cap")
_MOUNT_IN_USE = word_set("used usage use occupied filled fill")
_NO_MEMORY = named("no_memory")
_SHARE = word_set("pct percent perc percentage share")
_ACTIVITY = word_set("util utilization utilisation busy activity active")
MEMORY_WORDS = word_set("mem memory ram vram hbm dram rss fb framebuffer")
_WHEN = named("when")
_OWNERS = named("owners")
_FILL = named("fill")
_TIME_UNITS = {word: seconds for word, seconds in TIME_UNITS.items() if seconds >= 1e-3}
_ELAPSED = named("elapsed")
_MOMENT = word_set("time timestamp ts date datetime when at t clock stamp utc local day hour")
_ORDER = named("order")
_DONE = named("done")
_PIECES_OF_WORK = word_set("request requests req reqs prompts calls")
_ITEMS = named("items")
"""Pieces of work of a batch: alone they name what there is, beside `done` how far it has come."""
_LOADS = named("loads")
_BESIDE_LOAD = word_set("request requests req reqs num n of in flight seqs per s sec")
_ASKED = word_set("request requests req reqs")
_A_SECOND = word_set("per s sec second min minute")
_NOT_LOAD = word_set("error errors fail failed failures hit hits limit byte bytes ms seconds latency bucket")
_STATES = named("states")
_WHO = named("who")
_OUTCOMES = named("outcomes")
_PIECE = regex(r"\d+(?:[._]\d+)+|\d+|[A-Za-z]+")
_UNIT_CASE = regex(r"([KMGTkmgt])(i?)([Bb])(?![a-z])")
_CAMEL = regex(r"(?<=[a-z])(?=[A-Z])")


def pieces(name: str) -> list[str]:
    """The words of a name in their order, in small letters; `0_7_3` stays whole, `gpu0` is two.

    >>> pieces("rssGiB_0_7_3"), pieces("gpu0_mib")
    (['rss', 'gib', '0_7_3'], ['gpu', '0', 'mib'])
    """
    text = _UNIT_CASE.sub(lambda unit: f" {unit[0].lower()} ", in_english(name).strip().strip("\"'`*"))
    return [piece.lower() for piece in _PIECE.findall(_CAMEL.sub(" ", text)) if piece]


_END_TO_END = regex(r"(?<![a-z\d])e ?2 ?e(?: ?l)?(?![a-z\d])")
_WITHOUT = word_set("timeout limit target slo sla threshold budget goal max_latency deadline expected")
"""Words beside which a latency is a wish and no measure."""


def service(name: str) -> tuple[str, str]:
    """Which figure of the service that users see a name tells, and the unit of bare numbers; ("", "") for another name.

    Quantities: `ttft_s` (time to the first token), `tpot_s` (time per further token), `latency_s` (of a whole request).

    >>> service("ttft_p50_s"), service("Inter-token latency (ms)"), service("slo_latency_ms"), service("p95_ms"), service("p95_e2e_s")
    (('ttft_s', 's'), ('tpot_s', 'ms'), ('', ''), ('latency_s', 'ms'), ('latency_s', 's'))
    """
    words = pieces(name)
    among = set(words)
    unit = "ms" if among & {"ms", "msec", "millis", "milliseconds"} else "us" if among & {"us", "micros"} else "s"
    if among & _WITHOUT:
        return "", ""
    if "ttft" in among or {"first", "token"} <= among or {"first", "byte"} <= among or "ttfb" in among:
        return "ttft_s", unit
    if among & {"tpot", "itl"} or {"inter", "token"} <= among or {"per", "token", "time"} <= among:
        return "tpot_s", unit
    if among & {"latency", "latencies", "rtt"} or {"response", "time"} <= among or _END_TO_END.search(name.lower()):
        return "latency_s", unit
    if len(words) == 3 and words[0] == "p" and words[1].isdigit() and among & {"ms", "s", "sec"}:
        return "latency_s", unit  # a percentile of seconds, and of nothing that has a name
    return "", ""


_COUNTED = word_set("requests request reqs calls answers responses replies n num count total in")
_ANSWERED = word_set("answered succeeded successful success ok completed served done")
_FAILED = word_set("errors error failed failure failures timeouts timeout rejected refused dropped abandoned")
_REFUSALS = frozenset(("408", "429", "499", *map(str, (*range(500, 509), 511, *range(520, 531)))))
"""Statuses with which a request that was well formed gets no answer: of HTTP, and those that proxies add."""
_OF_STATUS = (
    _ANSWERED | _FAILED | word_set("http status code client gateway upstream proxy requests responses replies count")
)
_SENT = word_set("sent requests reqs calls offered issued")
_PER_TIME = named("per_time")


def fate(name: str) -> str:
    """What became of the requests that a column of this name counts: `sent`, `answered`, `failed`; "" for another name.

    Statuses count as who asked sees them: 2xx is an answer; 408, 429, 499 and 5xx are none, and other 4xx are the caller's own.

    >>> [fate(name) for name in ("http_200", "client_gave_up_504", "errors_5xx", "http.requests", "answered_per_min", "error_rate", "http_400")]
    ['answered', 'failed', 'failed', 'sent', '', '', '']
    """
    words = pieces(name)
    among = set(words)
    if not words or among & _PER_TIME:
        return ""
    codes = [word for word in words if len(word) == 3 and word.isdigit() and word[0] in "2345"]
    classes = [before for before, word in itertools.pairwise(words) if word == "xx" and before in ("2", "3", "4", "5")]
    if codes or classes:
        told = len(words) == 1 or among & _OF_STATUS  # `ctx_512` counts something else
        bad = (told and any(code in _REFUSALS for code in codes)) or "5" in classes
        good = all(code[0] == "2" for code in codes) and all(before == "2" for before in classes)
        if bad:
            return "failed"
        return "answered" if good and among & {"http", "status", "xx", "code", *_ANSWERED, *_COUNTED} else ""
    if among & _FAILED:
        return "failed" if among <= _FAILED | _COUNTED | {"http", "client", "gateway"} else ""
    if among & _ANSWERED:
        return "answered" if among <= _ANSWERED | _COUNTED | {"http"} else ""
    return "sent" if among & _SENT and among <= _SENT | _COUNTED | {"http"} else ""


_LASTING = regex(r"~?\s?(\d{1,9}(?:,\d{3})*(?:\.\d{1,9})?)\s?(us|µs|ms|msec|s|sec|secs|seconds?|m|min|minutes)?")


def seconds_of(text: str, unit: str) -> float | None:
    """Seconds of a latency as written, bare numbers in `unit`; None for another text.

    >>> seconds_of("4,120 ms", "s"), seconds_of("0.29", "s"), seconds_of("410", "ms"), seconds_of("n/a", "s")
    (4.12, 0.29, 0.41, None)
    """
    found = _LASTING.fullmatch(text.strip())
    if found is None:
        return None
    return round(float(found[1].replace(",", "")) * TIME_UNITS.get(found[2] or unit, 1.0), 9)


@lru_cache(maxsize=4096)
def column_of(name: str) -> Column:
    """What a column is by its name alone; the cells may refuse it.

    >>> column_of("rss_gib_prefix_on")[:3], column_of("gpu3_mib").gpu, column_of("minute").seconds
    (('memory', 'host', 'GiB'), 3, 60.0)
    >>> column_of("router_working_set_MiB")[:5], column_of("prefix_working_set_gib").role
    (('memory', 'host', 'MiB', 0.0, 'router'), 'figure')
    >>> column_of("container_memory_working_set_gib{pod=chat-14b}").unit
    'GiB'
    >>> column_of("shm_used_gib")[:2], column_of("/dev/shm size MiB")[:2], column_of("cgroup_shmem_mib").role
    (('memory', 'shm'), ('total', 'shm'), 'figure')
    >>> column_of("rss4711_kB").who, column_of("req/s").role, column_of("sum(rate(http_requests_total[5m]))").role
    ('pid 4711', 'running', 'running')
    """
    what, _, whose = name.partition(" | ")
    if whose:  # `titled`
        return column_of(what)._replace(who=whose)
    words = pieces(name)
    if not words or len(name) > 100:
        return Column(FIGURE)
    among = set(words)
    own = pieces(name.partition("{")[0]) or words  # labels say whose it is, and a model's `14b` is no unit
    unit = next((UNITS[word] for word in reversed(own) if word in UNITS and UNITS[word] in BYTES), "")
    if not unit and own[-1] == "b" and len(own) > 1:
        unit = "B"
    shares = among & _SHARE
    if (shares or "%" in name) and (whole := _share_of(tuple(word for word in words if word not in shares))):
        return whole
    setting = of_header(name)
    if setting is not None and not (among & _RESIDENT):
        return Column(SETTING, unit=unit, setting=setting)
    if (
        unit
        or among & _RESIDENT
        or (among <= _IN_USE | _DEVICE | _HOST | _GROUP | _LEFT and among & (_IN_USE | {"vram"}))
    ):
        return _memory(words, unit)
    return _of_named(words) or _other(words, among)


def _of_named(words: list[str]) -> Column | None:
    """Memory of who is named beside it, of which neither kind nor unit is told: `client_mem`; None for another name.

    >>> column_of("client_mem")[:2], column_of("client_mem").who, column_of("kv_mem").role, column_of("peak_mem").who
    (('memory', ''), 'client', 'figure', '')
    """
    rest = [word for word in words if word not in _IN_USE and word not in _FILL]
    if len(rest) == len(words) or not 0 < len(rest) <= _NAME_WORDS or not MEMORY_WORDS & set(words):
        return None
    if any(
        word in _SIZES or word in _NO_MEMORY or word in _SUM | _LEFT | _SHARE | _WHEN | _ORDER | _STATES
        for word in rest
    ):
        return None
    return Column(MEMORY, who=" ".join(rest)) if any(word.isalpha() and len(word) > 1 for word in rest) else None


def _share_of(words: tuple[str, ...]) -> Column | None:
    """Memory told as a share of the whole it is of: `host_mem_used_pct`, `RAM %`, `gpu memory percent`; None for other shares.

    `MEM %` alone (as `docker stats` heads it) is a container's.
    """
    among = frozenset(words)
    if not among & MEMORY_WORDS or among & (_NO_MEMORY - _SHARE - _ACTIVITY) or among & _SUM or not words:
        return None
    if among & _LEFT or (among & _ACTIVITY and not among & (_HOST | _GROUP)):
        return None  # `utilization.memory` of a device is how busy its memory is
    resource = "gpu" if among & _DEVICE else "host-used" if among & _HOST else "container"
    known = _DEVICE | _HOST | _GROUP | _IN_USE | _FILL | _OWNERS | _ACTIVITY
    gpu, left = _numbered(list(words))
    variant = " ".join(word for word in left if word not in known and not word.isdigit())
    return Column(MEMORY, resource, "%", gpu=gpu, variant=variant)


def _memory(words: list[str], unit: str) -> Column:
    among = set(words)
    device = bool(among & _DEVICE)
    gpu, left = _numbered(words)
    resident = bool(among & _RESIDENT)
    page = "cache" in among and bool(among & ({"page", "file", "buff"} | _GROUP))
    if {"shm"} & among or {"shared", "memory"} <= among:
        # a mount: it has a size of its own, and is no part of what a process or a group is told to have
        role = TOTAL if among & _SUM else MEMORY if among & _MOUNT_IN_USE else FIGURE
        return Column(role, "shm" if role != FIGURE else "", unit)
    if among & _SUM and not resident and not (among & (_IN_USE - {"mem", "memory"})):
        return Column(TOTAL, "gpu" if device else "host" if among & (_HOST | _GROUP) else "", unit, gpu=gpu)
    if among & _NO_MEMORY and not resident and not page:
        return Column(FIGURE, unit=unit)
    if resident:
        resource = "host"
    elif page:
        resource = "page-cache"
    elif "swap" in among:
        resource = "swap"
    elif among & _LEFT:
        if device or not among & (_HOST | {"mem", "memory"}):
            return Column(FIGURE, unit=unit)
        resource = "host-available"
    elif device:
        resource = "gpu"
    elif {"working", "set"} <= among and among & (_GROUP | _OWNERS):
        # what is left without files that were read once: what the kernel would have to kill for. Without an owner it may be one of prefixes
        resource = "host"
    elif among & _GROUP:
        resource = "container"
    elif among & _HOST:
        resource = "host-used"
    elif among & (_IN_USE - {"set"}) or among & _WHEN:
        resource = ""
    else:
        return Column(FIGURE, unit=unit)
    rest = [word for word in left if word not in _OF_MEMORY and UNITS.get(word) not in BYTES and word != "b"]
    state = [word for word in rest if word in _WHEN]
    if state and all(word in _WHEN or word in _FILL or word.isdigit() for word in rest):
        return Column(MEMORY, resource, unit, gpu=gpu, state=_plainly(rest))
    if state:
        # the moment is told by words that stand together, what is compared by the others: `after_sleep_with_flag`
        begin = next(at for at, word in enumerate(rest) if word in _WHEN)
        end = next(
            (at for at in range(begin, len(rest)) if rest[at] not in _WHEN | _FILL and not rest[at].isdigit()),
            len(rest),
        )
        others = [word for word in rest[:begin] + rest[end:] if word not in _FILL]
        if others:
            compared = " ".join(others).replace("_", ".")
            return Column(MEMORY, resource, unit, gpu=gpu, state=_plainly(rest[begin:end]), variant=compared)
    owner: list[str] = []
    variant: list[str] = []
    for at, word in enumerate(rest):
        process = resident and word.isdigit() and len(word) > 2  # `rss4711`: no release has such a number
        owned = word in _OWNERS or process or (word.isdigit() and at > 0 and rest[at - 1] in _OWNERS)
        word = f"pid {word}" if process and not (at > 0 and rest[at - 1] in _OWNERS) else word
        (owner if owned else variant).append(word)
    if owner and resource == "host-used":
        resource = "host"  # of the one that is named, and not of all
    return Column(MEMORY, resource, unit, who=" ".join(owner), gpu=gpu, variant=" ".join(variant).replace("_", "."))


def of_free(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """The columns of `free`, which tells a host's memory and does not say so: known by their company.

    >>> {name: column.resource for name, column in of_free({name: column_of(name) for name in ("time", "total_mib", "used_mib", "buff_cache_mib", "available_mib")}).items() if column.resource}
    {'total_mib': 'host', 'used_mib': 'host-used', 'buff_cache_mib': 'page-cache', 'available_mib': 'host-available'}
    """
    words = {name: frozenset(word for word in pieces(name) if UNITS.get(word) not in BYTES) for name in columns}
    if not any(column.role in (TIME, ELAPSED) for column in columns.values()):
        return columns  # what it prints itself has its own reader
    if not {frozenset(("total",)), frozenset(("used",)), frozenset(("available",))} <= set(words.values()) or not any("buff" in of or "swap" in of for of in words.values()):  # fmt: skip
        return columns
    roles = {"total": (TOTAL, "host"), "used": (MEMORY, "host-used"), "available": (MEMORY, "host-available")}
    found = {}
    for name, column in columns.items():
        role, resource = roles.get(" ".join(words[name]), (column.role, column.resource))
        if "buff" in words[name]:
            role, resource = MEMORY, "page-cache"
        found[name] = column._replace(role=role, resource=resource)
    return found


def of_group(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """The columns of a memory group whose working set names no owner: beside the group's files, swap or resident part it is none of prefixes.

    >>> {name: column.resource for name, column in of_group({name: column_of(name) for name in ("time", "working_set_gib", "page_cache_gib")}).items() if column.resource}
    {'working_set_gib': 'host', 'page_cache_gib': 'page-cache'}
    >>> of_group({name: column_of(name) for name in ("time", "working_set_gib", "gpu_used_mib")})["working_set_gib"].role
    'figure'
    >>> of_group({name: column_of(name) for name in ("time", "cgroup", "memory_current_bytes")})["memory_current_bytes"].resource
    'container'
    >>> [column.resource for column in of_group({name: column_of(name) for name in ("t", "anon_gib", "file_gib", "kernel_gib", "current_gib")}).values()]
    ['', 'host', 'page-cache', '', 'container']
    >>> [column.resource for column in of_group({name: column_of(name) for name in ("utc", "memory.current", "memory.max", "shmem")}).values()]
    ['', 'container', 'container', '']
    """
    files = {
        name: _GROUP_FILES.get(" ".join(word for word in pieces(name) if UNITS.get(word) not in BYTES and word not in _GROUP))
        for name in columns
    }  # fmt: skip
    if (MEMORY, "container") in files.values():
        return {
            name: column._replace(role=told[0], resource=told[1]) if (told := files[name]) else column
            for name, column in columns.items()
        }
    stat = {name: _STAT_PARTS.get(" ".join(word for word in pieces(name) if UNITS.get(word) not in BYTES and word not in _BESIDE_STAT), "") for name in columns}  # fmt: skip
    if sum(bool(part) for part in stat.values()) >= _STAT_COLUMNS and any(
        columns[name].unit for name, part in stat.items() if part
    ):
        return {name: column._replace(role=MEMORY if stat[name] != "-" else FIGURE, resource=stat[name].strip("-")) if stat[name] else column for name, column in columns.items()}  # fmt: skip
    if any("cgroup" in pieces(name) for name in columns):  # a column names the group that each row is about
        return {
            name: column._replace(resource="container")
            if column.role == MEMORY and not column.resource and "memory" in pieces(name)
            else column
            for name, column in columns.items()
        }
    if not any(column.role == MEMORY and column.resource in _BESIDE_GROUP for column in columns.values()):
        return columns
    return {
        name: column._replace(role=MEMORY, resource="host")
        if column.role == FIGURE
        and column.unit
        and {"working", "set"} <= set(pieces(name)) <= _PLAIN_SET | UNITS.keys()
        else column
        for name, column in columns.items()
    }


_STAT_PARTS = {
    "anon": "host", "rss": "host", "file": "page-cache", "cache": "page-cache", "inactive file": "page-cache", "active file": "-", "current": "container", "usage": "container",
    "shmem": "-", "kernel": "-", "slab": "-", "sock": "-", "pagetables": "-", "kernel stack": "-", "swap": "swap", "swapcached": "-", "mapped file": "-",
}  # fmt: skip
"""Fields of `memory.stat` and files of a memory group (Documentation/admin-guide/cgroup-v2.rst); `-` = a part that nothing asks for."""
_GROUP_FILES = {
    "memory current": (MEMORY, "container"), "mem current": (MEMORY, "container"), "memory max": (TOTAL, "container"), "mem max": (TOTAL, "container"),
    "memory swap current": (MEMORY, "swap"), "memory peak": (FIGURE, ""), "memory high": (FIGURE, ""), "anon": (MEMORY, "host"), "memory stat anon": (MEMORY, "host"),
    "file": (MEMORY, "page-cache"), "memory stat file": (MEMORY, "page-cache"),
}  # fmt: skip
"""Files of a memory group, as who samples them calls his columns; one of what it holds now has to be among them."""
_BESIDE_STAT = word_set("memory mem cgroup container total stat")
_STAT_COLUMNS = 3  # two such words stand in tables of other things
_BESIDE_GROUP = frozenset(("page-cache", "swap", "container", "host"))
_PLAIN_SET = word_set("working set mem memory bytes size total")


def by_company(name: str, column: Column) -> Column | None:
    """A column that is named by a program and a size, beside columns that are memory of named programs: it is that program's.

    >>> by_company("litellm_mib", column_of("litellm_mib")).who, by_company("disk_gib", column_of("disk_gib")), by_company("litellm", column_of("litellm"))
    ('litellm', None, None)
    """
    words = [word for word in pieces(name) if UNITS.get(word) not in BYTES]
    if column.role != FIGURE or not column.unit or column.unit == "%" or not words or len(words) > _NAME_WORDS:
        return None
    if any(word in _SIZES or not word.isalpha() for word in words) or frozenset(words) & _NO_MEMORY:
        return None
    return Column(MEMORY, "host", column.unit, who=" ".join(words))


_NAME_WORDS = 2
_SIZES = named("sizes")
"""What sizes are of that no process holds."""


def is_size_of_something(name: str) -> bool:
    """Whether a name says what is counted in bytes that no process holds: traffic, files, limits.

    >>> is_size_of_something("net_rx"), is_size_of_something("extractor")
    (True, False)
    """
    words = pieces(name)
    return any(word in _SIZES for word in words) or bool(frozenset(words) & _NO_MEMORY)


_OF_MEMORY = (
    _RESIDENT | _DEVICE | _HOST | _GROUP | _LEFT | _IN_USE | _FILL | word_set("swap page cache file buff working")
)


def _plainly(words: list[str]) -> str:
    return " ".join(word for word in words if not word.isdigit() and word not in _FILL)


def _numbered(words: list[str]) -> tuple[int | None, list[str]]:
    """The number behind a word for a device, and the words without it."""
    for at, word in enumerate(words[:-1]):
        if word in _DEVICE and words[at + 1].isdigit() and len(words[at + 1]) <= 3:
            return int(words[at + 1]), [*words[: at + 1], *words[at + 2 :]]
    return None, words


_MAKES = frozenset(("vllm", *(server["name"] for server in read("servers")["server"])))
"""Before the name of a quantity, as exporters write it: whose it is, and no other quantity."""


def _other(words: list[str], among: set[str]) -> Column:
    if words[1:] and words[0] in _MAKES:
        words, among = words[1:], among - {words[0]}
    timed = next((word for word in reversed(words) if word in _TIME_UNITS), None)
    if timed is not None and "epoch" in among and among <= _MOMENT | {"epoch", "unix", timed}:
        return Column(TIME)  # `epoch_s`; `epoch` alone may count passes over a data set
    if timed is not None and among <= _ELAPSED | {timed} and (len(among) > 1 or len(timed) > 1):
        return Column(ELAPSED, seconds=_TIME_UNITS[timed])
    if among & {"uptime", "elapsed"} and len(among) <= 2 and among <= _ELAPSED:
        return Column(ELAPSED, seconds=1.0)
    if among <= _MOMENT:
        return Column(TIME)
    if len(words) == 1 and words[0] in _ORDER | {"#"}:
        return Column(ORDINAL)
    if among & _PIECES_OF_WORK and among <= _DONE | _PIECES_OF_WORK:
        return Column(REQUESTS)
    if among & _ITEMS and among & _DONE and among <= _DONE | _ITEMS:
        return Column(REQUESTS)
    if (
        among & _ASKED
        and ((among <= _ASKED | _A_SECOND and among & _A_SECOND) or among & {"rate", "irate"})
        and not among & _NOT_LOAD
    ):
        return Column(RUNNING)
    if among & _LOADS and among <= _LOADS | _BESIDE_LOAD:
        return Column(RUNNING)
    if among <= _OUTCOMES | {"exit", "code", "it", "does"}:
        return Column(OUTCOME)
    if among <= _STATES:
        return Column(STATE)
    if among & _WHO and among <= _WHO | {"id", "name", "no", "index", "ip"}:
        return Column(WHO)
    return Column(FIGURE)
