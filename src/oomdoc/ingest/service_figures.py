"""What a service gave to those who use it, and what its surroundings allow it: figures that stand in a line of a short text.

    hour 08:00: 5,112 requests, 5,112 x 200; p99 2.3 s (goal 5 s)        answered-share, reached-seconds, goal-seconds
    client, median time to first token 6.8 s                             client-seconds
    `vllm:request_queue_time_seconds_sum` +3.1, `_count` +3600           samples of metrics, several in one line
    1677721600 bytes (1.7 GB) copied, 14.3 s, 117 MB/s                   read-rate
    eth0  80411.20  6120.10  118904.11  412.30   (of `sar -n DEV`)       link-rate
    Speed: 1000Mb/s   (of `ethtool`)                                     link-speed
    nr_periods 15120 / nr_throttled 310   (of a group's cpu.stat)        cpu-periods, cpu-throttled
    /sys/fs/cgroup/pids.current:1011 / pids.max 1024                     tasks, tasks-limit
    grace period 180; interval 30, unhealthy threshold 2                 the probe of a `container`, as kubectl prints one

A complaint is judged by such figures: whether the service reached its goal, and where the seconds of a request pass. Each is a
`note` with a value: seconds, a share (0 to 1), bytes per second, or a count of scheduling periods. A goal and what was reached belong
together where they stand in one line. What nothing here knows is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.metrics import kept_name
from oomdoc.ingest.text_form import is_log_line
from oomdoc.regexes import regex

TELLING = regex(
    rb"(?i)\b(?:goals?|slo|sla|objective|objetivo|ziel|target|clients?|users?|browser|caller|gateway|callers)\b|\brequests?\b|bytes/s|\bcopied,|rxkB/s|\bSpeed:|\bnr_throttled|\bpids\.max|vllm:\w+|\bthreshold"
)
"""Whether a text holds anything of this kind: one search for each short text."""

_LINE = 600
_SECONDS = r"(?P<value{0}>\d{{1,6}}(?:[.,]\d{{1,4}})?)\s?(?P<unit{0}>ms|milliseconds|s|sec|secs|seconds|min|minutes)\b"
_GOAL = regex(
    r"\b(?:goal|slo|sla|objective|target|objetivo|ziel|agreed|promised|limit agreed)\b(?: (?:is|of|was|for|p\d\d|ttft|latency|a|the|first|token)){0,4} {0,3}[:=]? {0,3}(?:(?:<=?|≤|under|below|within|at most|max(?:imum)?) {0,3})?"
    + _SECONDS.format(""),
    re.I,
)
_REACHED = regex(
    r"\b(?P<which>p ?(?:50|75|90|95|98|99|99\.9)|median|mean|average|avg|max(?:imum)?|worst|slowest|percentile)\b(?!\s*(?:goal|slo|sla|target))[^.;:()\d]{0,40}?[:=]?\s*(?:of |is |was |at |stayed (?:at |below |under )?|below |under |<=? ?)?"
    + _SECONDS.format(""),
    re.I,
)
_RANK = {"median": 50.0, "mean": 50.0, "average": 50.0, "avg": 50.0, "percentile": 95.0, "max": 100.0, "maximum": 100.0, "worst": 100.0, "slowest": 100.0}  # fmt: skip
_COUNT = r"(?P<{0}>\d{{1,3}}(?:[ ,.']\d{{3}})+|\d{{1,12}})"
_ANSWERED = regex(
    rf"{_COUNT.format('asked')} (?:\w+ )?(?:requests?|calls?|queries|prompts?)\b[^.;\d]{{0,30}}\s{_COUNT.format('got')} ?(?:x|×|times|with|were|was|got|answered|ok\b)\s*(?:status |http )?(?:2\d\d\b|ok\b|answered|served|complete\w*)",
    re.I,
)
_ALL = regex(
    r"\b(?:all|every|each)(?: of(?: the| them)?)?(?: \d[\d,.]*)?(?: requests?| calls?| answers?| of them)?\b[^.;]{0,20}\b(?:answered|served|completed|came back|(?:with |were |are |got |is )(?:status |http )?200)\b"
    r"|\b(?:no|not one|not a single|zero|0) (?:request|call|user)s? (?:(?:was|were|has been|had been|is) )?(?:refused|lost|failed|dropped|rejected|turned away|affected|timed out)\b"
    r"|\b(?:requests?|calls?) (?:refused|lost|failed|dropped|rejected)\s?[:=]\s?0\b",
    re.I,
)
_CLIENT = regex(
    r"\b(?:client(?:[- ]side|s)?|users?|browser|callers?|caller's|gateway|load balancer|proxy|sdk|app|end[- ]to[- ]end)\b[^.;\d]{0,60}?(?:\bfirst (?:token|word|byte|chunk)|\bttft|\blatency|\bwait\w*|\bmedian|\bmean|\bp\d\d|\bsees?|\bmeasures?|\banswer|\bresponse)[^.;\d]{0,30}?(?:p?(?:50|90|95|99)\s)?\**\s?"
    + _SECONDS.format(""),
    re.I,
)
_NAMED = regex(
    r"(?P<name>(?:vllm:)?\b[a-z][a-z0-9]*(?:_[a-z0-9]+){2,12}|(?<=[`\s])_(?:sum|count))(?:\{(?P<labels>[^}]{0,200})\})?[`'\"]?\s{0,9}[:=]?\s?(?P<how>at most|max(?:imum)?|peak|never above|up to|highest)?\s?(?P<value>[+-]?\d{1,15}(?:,\d{3})*(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?)(?![\d.]*[\w%/:-])(?P<both> (?:both|each))?"
)
_OURS = regex(r"(?:vllm:)?(?:num_requests_|kv_cache_usage|gpu_cache_usage|num_preemptions|request_|generation_tokens|prompt_tokens|prefix_cache_|time_to_first_token|time_per_output|e2e_request|inter_token)\w*$")  # fmt: skip
_COPIED = regex(r"\d+ bytes[^\n]{0,40} copied, [\d.]+ s(?:econds)?, (?P<value>[\d.]+) (?P<unit>[kKMGT]?i?B)/s\s*$")
_SPEED = regex(r"\s*(?:Link )?Speed:\s*(?P<value>\d{1,6}) ?(?P<unit>[MG])b(?:/s|ps|it/s)?\s*$", re.I)
_SAR = regex(r"\s*(?:\d\d:\d\d:\d\d(?: [AP]M)?|Average:)?\s*(?P<name>[a-z][\w.@-]{1,20})\s+[\d.]+\s+[\d.]+\s+(?P<got>[\d.]+)\s+(?P<sent>[\d.]+)(?:\s+[\d.]+){0,4}\s*$")  # fmt: skip
_ASKED_SAR = regex(r"\bsar\b.{0,20}-n DEV|\brxkB/s\b")
_THROTTLE = regex(
    r"\s*(?:/[\w./:-]{1,200}/)?(?P<name>nr_periods|nr_throttled|pids\.current|pids\.max)[\s:=]+(?P<value>\d{1,15})\s*$"
)
_CHECK = {
    "delay": regex(r"(?:health[ _-]?check[ _-]?)?(?:grace[ _-]?period(?:[ _-]?seconds)?|start[ _-]?period)\"?['\s:=]{1,4}(?:of )?(?P<value>\d{1,5})(?: ?s(?:ec\w*)?)?\b", re.I),
    "period": regex(r"(?<!fall)(?<!scrape )\b(?:check[ _-]?)?interval(?:[ _-]?seconds)?\"?['\s:=]{1,4}(?:of )?(?P<value>\d{1,5})(?: ?s(?:ec\w*)?)?\b", re.I),
    "failure": regex(r"\b(?:unhealthy|failure)[ _-]?threshold(?:[ _-]?count)?\"?['\s:=]{1,4}(?:of )?(?P<value>\d{1,3})\b", re.I),
}  # fmt: skip
"""What supervisors that are no kubelet call the delay, the period and the failures of their checks."""
_BYTES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1024.0, "kiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3, "TiB": 1024.0**4}  # fmt: skip
_TOPICS = {"nr_periods": "cpu-periods", "nr_throttled": "cpu-throttled", "pids.current": "tasks", "pids.max": "tasks-limit"}  # fmt: skip


def _seconds(match: re.Match[str]) -> float:
    value = float(match["value"].replace(",", "."))
    unit = match["unit"].lower()
    return value / 1e3 if unit in ("ms", "milliseconds") else value * 60 if unit.startswith("min") else value


def _rank(which: str) -> float:
    plain = which.lower().replace(" ", "")
    return _RANK.get(plain) or float(plain.removeprefix("p"))


def _whole(text: str) -> int:
    return int(re.sub(r"[ ,.']", "", text))


def service(text: str) -> Iterator[tuple[str, float]]:
    """Topic and value of what a sentence says of the service.

    >>> list(service("5,112 requests, 5,112 x 200; ttft p50 0.29 s, p99 2.3 s (goal 5 s)"))
    [('goal-seconds', 5.0), ('reached-seconds', 2.3), ('answered-share', 1.0)]
    >>> list(service("SLO p95 800 ms: p95 640 ms this week")), list(service("client, median time to first token **6.8 s**"))
    ([('goal-seconds', 0.8), ('reached-seconds', 0.64)], [('client-seconds', 6.8)])
    >>> list(service("the goal is a smaller pool")), list(service("40 requests, 12 with 200"))
    ([], [('answered-share', 0.3)])
    """
    goal = _GOAL.search(text)
    if goal:
        rest = text[: goal.start()] + " ; " + text[goal.end() :]
        reached = [(_rank(found["which"]), _seconds(found)) for found in _REACHED.finditer(rest)]
        if reached:
            yield "goal-seconds", _seconds(goal)
            yield "reached-seconds", max(reached)[1]  # the rarest of them: who reaches it there reaches it elsewhere
    counted = _ANSWERED.search(text)
    if counted and 0 < _whole(counted["asked"]) >= _whole(counted["got"]):
        yield "answered-share", _whole(counted["got"]) / _whole(counted["asked"])
    elif _ALL.search(text):
        yield "answered-share", 1.0
    client = _CLIENT.search(text)
    if client and goal is None:
        yield "client-seconds", _seconds(client)


def samples(text: str) -> Iterator[tuple[str, str | None, float]]:
    """Name, labels and value of metrics that stand in one line, two or more of them; `delta` are the labels of a difference.

    >>> list(samples("`vllm:request_queue_time_seconds_sum` +3.1, `vllm:request_prefill_time_seconds_sum` +504.0, `_count` +3600 both"))[2:]
    [('vllm:request_queue_time_seconds_count', 'delta', 3600.0), ('vllm:request_prefill_time_seconds_count', 'delta', 3600.0)]
    >>> list(samples("t=0 vllm:generation_tokens_total 1203.0  vllm:num_preemptions_total 0.0"))
    [('vllm:generation_tokens_total', None, 1203.0), ('vllm:num_preemptions_total', None, 0.0)]
    >>> list(samples("num_requests_waiting 0 in every scrape, kv_cache_usage_perc at most 0.03"))
    [('vllm:num_requests_waiting', None, 0.0), ('vllm:kv_cache_usage_perc', None, 0.03)]
    >>> list(samples("max_model_len 4096 and max_num_seqs 8"))
    []
    """
    found: list[tuple[str, str | None, float]] = []
    sums: list[str] = []
    for match in _NAMED.finditer(text):
        name, value = match["name"], float(match["value"].replace(",", ""))
        labels = "delta" if match["value"][0] in "+-" else match["labels"]
        if name in ("_count", "_sum"):
            found += [(one.removesuffix("_sum") + name, labels, value) for one in (sums if match["both"] else sums[-1:])]  # fmt: skip
            continue
        if not _OURS.match(name):
            continue
        kept = kept_name(name if name.startswith("vllm:") else f"vllm:{name}")
        if kept is not None:
            found.append((kept, labels, value))
            if kept.endswith("_sum"):
                sums.append(kept)
    if len(found) > 1:
        yield from found


def _of_machine(text: str, listed: bool) -> Iterator[tuple[str, float]]:
    """Topic and value of what a tool printed of a link, a read or a group's processors; `listed`: traffic of devices was asked for."""
    copied = _COPIED.search(text)
    if copied and copied["unit"] in _BYTES:
        yield "read-rate", float(copied["value"]) * _BYTES[copied["unit"]]
    speed = _SPEED.match(text)
    if speed:
        yield "link-speed", float(speed["value"]) * (1e9 if speed["unit"] in "Gg" else 1e6) / 8
    traffic = _SAR.match(text) if listed else None
    if traffic and traffic["name"] != "lo":
        yield "link-rate", max(float(traffic["got"]), float(traffic["sent"])) * 1024
    throttled = _THROTTLE.match(text)
    if throttled:
        yield _TOPICS[throttled["name"]], float(throttled["value"])


def _health_check(lines: Sequence[str]) -> tuple[int, str] | None:
    """The line of the interval, and the budget of a health check that a text tells, in the words of `kubectl describe`."""
    found: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines, 1):
        for name, pattern in _CHECK.items():
            match = pattern.search(line) if len(line) <= _LINE and not is_log_line(line) else None
            if match:
                found.setdefault(name, (number, int(match["value"])))
    if not {"period", "failure"} <= found.keys():
        return None
    delay = found.get("delay", (0, 0))[1]
    return found["period"][0], f"delay={delay}s period={found['period'][1]}s #failure={found['failure'][1]}"


def read(data: bytes) -> Iterator[Batch]:
    """The figures of a short text whose first line has number 1."""
    lines = data.decode("utf-8", "replace").split("\n")
    rows = Rows()
    listed = False
    check = _health_check(lines)
    if check:
        rows.add("container", check[0], liveness=check[1])
    for number, line in enumerate(lines, 1):
        if len(line) > _LINE:
            continue
        listed = listed or bool(_ASKED_SAR.search(line))
        told = [*_of_machine(line, listed)]
        if not is_log_line(line):
            told += service(line)
            for name, labels, value in samples(line):
                rows.add("metric", number, name=name, labels=labels, value=value)
        for topic, value in told:
            rows.add("note", number, topic=topic, value=value, text=line.strip()[:TEXT_CAP])
    yield from rows.take()
