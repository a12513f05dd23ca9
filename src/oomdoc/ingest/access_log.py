"""Access logs of what stands before a server: nginx, Envoy, Traefik, Apache and their like, one answered call a line.

    10.0.0.7 - - [17/Mar/2026:10:00:00 +0000] "POST /v1/completions HTTP/1.1" 504 167 rt=60.000 urt=60.000
    [2026-03-17T10:01:00.120Z] "POST /v1/completions HTTP/1.1" 200 - 512 9120 4211 4205 "-" "python-httpx" "id" "llm" "10.0.0.9:8000"
    10.0.0.7 - - [17/Mar/2026:10:00:00 +0000] "POST /v1/completions HTTP/1.1" 200 812 "-" "curl" 14 "llm@docker" "http://10.0.0.9:8000" 5100ms
    2026-03-17T10:00:00.120Z  info  tenant-a  /v1/completions  200  2434
    2026-03-17T10:05:00Z front[31]: POST /v1/completions 504 no answer after 300s
    [INFO] Request 10.0.0.7 "POST /v1/completions HTTP/1.1" 502 58 "curl" 5m0.003s
    [GIN] 2026/03/17 - 10:05:00 | 200 |  1m27.874312s |        10.0.0.7 | POST     "/v1/completions"
    [17/Mar/2026:10:00:00 +0000] chat 200 prompt=1800 out=120 5.41s
    10.0.0.7:51022 [17/Mar/2026:10:00:00.115] front pool/a 0/0/1/412/2204 200 3120 - - ---- 44/44/40/20/0 0/0 "POST /v1/completions HTTP/1.1"
    https 2026-03-17T10:01:00.120Z app/llm/50dc6c495c0c9188 10.0.0.7:2817 10.0.0.9:8000 0.001 12.200 0.000 200 200 512 9120 "POST https://llm:443/v1/completions HTTP/1.1" ...
    2026/03/17 10:00:00 [error] 31#31: *812 upstream timed out (110: ...) while reading response header from upstream, ... request: "POST /v1/completions HTTP/1.1"

Calls of an API that serves models are rows of `request`: status, how long, who asked, and tokens where the writer counts them. A line of a server's own without a duration
gives none: servers write such a line for every call, and nothing can be learnt from it that their own counters do not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.request_keys import moment
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "access-log"

_LINE_CAP = 4000
_CALL = regex(
    r"\"(?:GET|POST|PUT) (?P<path>/[^\s\"]{0,400})(?: HTTP/\d(?:\.\d)?)?\"[ ,]+(?P<status>\d{3}|0(?= [A-Z]))\b(?P<rest>.*)$"
)
_BARE_CALL = regex(r"(?:^|[ \t])(?P<path>/[^\s\"']{1,200})[ \t]+(?P<status>[1-5]\d\d)(?P<rest>[ \t].*)$")
"""The same in columns of somebody's own: a path, a status, and how long it took."""
_COUNTED_CALL = regex(
    r"\]?[ \t]+(?P<path>[\w./-]{1,60})[ \t]+(?P<status>[1-5]\d\d)(?P<rest>(?=.*\b(?:in|prompt|input)\w*=\d).*)$"
)
"""A writer of somebody's own, who counts tokens: that makes it a call of a model."""
_TOKENS = (
    regex(r"\b(?:in|prompt|input)(?:_tok(?:en)?s?)?=(\d{1,9})\b"),
    regex(r"\b(?:out|completion|output|gen)(?:_tok(?:en)?s?)?=(\d{1,9})\b"),
)
_LASTED = regex(
    r"[ \t]+(?:(?P<value>\d{1,7}(?:\.\d{1,6})?)(?P<unit>ms|us|s)?|-)(?:[ \t]|$)|.{0,60}?\bafter (?P<late>\d{1,6}(?:\.\d{1,3})?) ?(?P<late_unit>ms|s)\b"
)
API = regex(
    r"/v\d(?:/|\b)|/generate|/invocations|/infer\b|/chat|/completion|/embed|/rerank|/predict|/api/(?:chat|generate)"
)
_NAMED = regex(
    r"\b(?:rt|request_time|req_time|total_time|duration|urt|upstream_response_time|response_time|latency)[=:] ?\"?(?P<value>\d{1,9}(?:\.\d{1,9})?)(?P<unit>ms|us|s)?\b"
)
_ENVOY = regex(r" (?:-|[A-Z][A-Za-z,]{1,12})(?: (?:-|[a-z]\w{2,80})(?:\{\S{1,200}\})? \S{1,200} \"[^\"]{0,300}\")? \d{1,15} \d{1,15} (?P<value>\d{1,9}) (?:\d{1,9}|-)(?: |$)")  # its newer formats tell why, behind the flags  # fmt: skip
_TRAEFIK = regex(r" (?P<value>\d{1,9})ms\s*$")
_NGINX = regex(r"[ \"](?P<value>\d{1,6}\.\d{3})(?: (?:\d{1,6}\.\d{3}|-))*\s*$")
_GO = regex(r"[ |](?P<value>(?:\d{1,4}h)?(?:\d{1,4}m(?!s))?\d{1,6}(?:\.\d{1,9})?(?:ms|µs|us|s))\s*$")
"""How programs written in Go print a duration: `5m0.003s`, `412.3ms`."""
_GO_PART = regex(r"(?P<value>\d{1,6}(?:\.\d{1,9})?)(?P<unit>h|ms|µs|us|m|s)")
_GIN = regex(
    r"\[GIN\] (?P<day>\d{4}/\d\d/\d\d) - (?P<clock>\d\d:\d\d:\d\d) \| +(?P<status>\d{3}) \|(?P<lasted>[^|]{1,30}) \| +(?P<client>[\w.:-]{3,60}) \| (?:GET|POST|PUT) +\"(?P<path>/[^\"]{0,400})\""
)
_UPSTREAM = regex(
    r"(?P<day>\d{4}/\d\d/\d\d) (?P<clock>\d\d:\d\d:\d\d) \[(?:error|crit)\] \d+#\d+: (?:\*\d+ )?"
    r"(?:(?P<late>upstream timed out)|upstream prematurely closed|no live upstreams|(?:recv|connect|send|readv|writev)\(\) failed)\b.{0,200}?upstream, client: (?P<client>[\w.:-]{3,60}), .{0,400}?request: \"(?:GET|POST|PUT) (?P<path>/[^\s\"]{0,400})"
)
"""nginx's own log of calls that what stands behind it did not answer: it gives 504 for one that came too late, else 502."""
_BALANCER = regex(
    r"(?:(?:https?|h2|grpcs|wss?) )?(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,12}) \S{1,120} (?P<client>[\w.:-]{3,60}) (?P<target>[\w.:-]{1,60}) "
    r"(?P<parts>(?:-1|\d{1,6}(?:\.\d{1,6})?)(?: (?:-1|\d{1,6}(?:\.\d{1,6})?)){2}) (?P<status>\d{3}) (?:\d{3}|-) \d{1,15} \d{1,15} "
    r"\"(?:GET|POST|PUT) https?://[^/\s\"]{1,260}(?P<path>/[^\s\"]{0,400}) [^\"]{0,20}\"(?P<rest>.*)$"
)
"""A balancer of AWS (access logs of Application and Classic Load Balancers): when it was done, who asked, whom it asked, how long it took to
hand over, to wait and to answer (-1: it has given up), its status and that of who answered."""
_PROXIED = regex(
    r"(?P<client>[\w.:-]{3,60}):\d{1,5} \[(?P<stamp>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d)(?P<part>\.\d{3})\] \S{1,120} \S{1,120}/\S{1,120} "
    r"(?:-1|\d{1,9})(?:/(?:-1|\d{1,9})){3}/\+?(?P<lasted>\d{1,9}) (?P<status>-1|\d{3}) \+?\d{1,15} .{0,300}?\"(?:GET|POST|PUT) (?P<path>/[^\s\"]{0,400})"
)
"""HAProxy: who asked, when it was accepted, five times in milliseconds (-1: not reached) of which the last is the whole, the status (-1: none)."""
_QUEUED = regex(r" (?P<server>\d{1,6})/(?P<backend>\d{1,6}) (?:\{[^}]{0,200}\} ){0,2}\"(?:GET|POST|PUT) /")
"""HAProxy: calls that stood before this one in the queue of a server, and in that of all; its flags of how a call ended (`----`, `sH--`) stand before."""
_CREATED = regex(r" \d{1,6} (?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,12}) \"")
_STAMP = regex(r"\[(?P<stamp>[^\]]{10,40})\]|^(?P<bare>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?)")
_CLIENT = regex(r"(?P<client>[\w.:-]{3,60}) (?:\S{1,60} (?P<user>[\w.@:-]{2,60}) \[)?")  # who asked, and his name
_UNITS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "s": 1.0, "m": 60.0, "h": 3600.0}


def _go_seconds(text: str) -> float:
    """Seconds of a duration as Go prints it.

    >>> _go_seconds("5m0.5s"), _go_seconds("250ms"), _go_seconds("1h2m3s")
    (300.5, 0.25, 3723.0)
    """
    return sum(float(part["value"]) * _UNITS[part["unit"]] for part in _GO_PART.finditer(text))


def _balanced(found: re.Match[str]) -> tuple[float | None, float | None, int, str | None] | None:
    """A call in a balancer's log, as `_call` gives it; a line without its moment is none."""
    ended = moment(found["stamp"])
    if ended is None:
        return None
    parts = [float(part) for part in found["parts"].split()]
    created = moment(asked["stamp"]) if (asked := _CREATED.search(found["rest"])) else None
    lasted = sum(parts) if min(parts) >= 0 else None if created is None else ended - created
    return ended - (lasted or 0.0), lasted, int(found["status"]), found["client"].rpartition(":")[0]


def _call(line: str) -> tuple[float | None, float | None, int, str | None] | None:
    """When it began, how many seconds it took (None where it was refused before the server), its status, who asked; None for another line."""
    if (gin := _GIN.search(line[:_LINE_CAP])) is not None:
        if not API.search(gin["path"]):
            return None
        lasting = _go_seconds(gin["lasted"])
        ended = moment(f"{gin['day'].replace('/', '-')} {gin['clock']}")
        return None if ended is None else ended - lasting, lasting, int(gin["status"]), gin["client"]
    if (lost := _UPSTREAM.match(line[:_LINE_CAP])) is not None:
        when = moment(f"{lost['day'].replace('/', '-')} {lost['clock']}")
        return (when, None, 504 if lost["late"] else 502, lost["client"]) if API.search(lost["path"]) else None
    if (balanced := _BALANCER.match(line[:_LINE_CAP])) is not None:
        return _balanced(balanced) if API.search(balanced["path"]) else None
    if (proxied := _PROXIED.search(line[:_LINE_CAP])) is not None:
        at = moment(f"{proxied['stamp']} +0000")
        t = None if at is None else at + float(proxied["part"])
        return (t, float(proxied["lasted"]) * 1e-3, max(0, int(proxied["status"])), proxied["client"]) if API.search(proxied["path"]) else None  # fmt: skip
    found = _CALL.search(line[:_LINE_CAP])
    bare = None if found else _BARE_CALL.search(line[:_LINE_CAP])
    counted = None if found or bare or "=" not in line else _COUNTED_CALL.search(line[:_LINE_CAP])
    found = found or bare or counted
    if found is None or not (counted or API.search(found["path"])):
        return None
    rest, begins = found["rest"], False
    if bare:
        lasted = _LASTED.match(rest)
        if lasted is None:
            return None
        value, unit = (lasted["value"], lasted["unit"]) if lasted["value"] else (lasted["late"], lasted["late_unit"])
        # who stands before a server and refuses a call himself has no duration of the server's to tell
        seconds = float(value) * _UNITS.get(unit, 1.0 if "." in value else 1e-3) if value else None
    elif named := _NAMED.search(rest):
        # without a unit nginx means seconds, with their three decimals; whole numbers are the milliseconds of other writers
        seconds = float(named["value"]) * _UNITS.get(named["unit"], 1.0 if "." in named["value"] else 1e-3)
    elif envoy := _ENVOY.match(rest):
        seconds, begins = float(envoy["value"]) * 1e-3, True
    elif traefik := _TRAEFIK.search(rest):
        seconds = float(traefik["value"]) * 1e-3
    elif nginx := _NGINX.search(rest):
        seconds = float(nginx["value"])
    elif go := _GO.search(rest):
        seconds = _go_seconds(go["value"])
    else:
        return None
    place = _STAMP.search(line[: found.start() + 1])
    at = moment(place["stamp"] or place["bare"]) if place else moment(line.split(" ", 1)[0])
    if at is not None and not begins and seconds is not None:
        at -= seconds  # written when the answer was complete
    client = None if begins or bare else _CLIENT.match(line)
    return at, seconds, int(found["status"]), client["user"] or client["client"] if client else None


def matches(head: Head) -> bool:
    """Two calls at least, and every second line is one."""
    if all(word not in head.data for word in (b" HTTP/", b"/v1/", b"[GIN]", b" out=", b"upstream")):
        return False
    calls = sum(_call(line) is not None for line in head.told)
    return calls >= 2 and 2 * calls >= len(head.told)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The calls, in the order of the log."""
    rows = Rows()
    longest = 0
    for chunk in chunks:
        for number, line in chunk.lines(_LINE_CAP):
            call = _call(line)
            if call is not None:
                if "--" in line and (queued := _QUEUED.search(line[:_LINE_CAP])) and (n := max(int(queued["server"]), int(queued["backend"]))) > longest:  # fmt: skip
                    longest = n
                    rows.add("trial_figure", number, experiment=0, attempt=number, name="proxy_queue_len", quantity="queued", value=float(n))  # fmt: skip
                at, seconds, status, client = call
                given, made = (int(told[1]) if (told := words.search(line[:_LINE_CAP])) else None for words in _TOKENS)
                rows.add("request", number, t=at, latency_s=seconds, status=status, tenant=client, input_tokens=given, output_tokens=made)  # fmt: skip
        if rows.count >= 20_000:
            yield from rows.take()
    yield from rows.take()
