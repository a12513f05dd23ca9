"""Statements of the cluster, of supervisors and of container runtimes in one line: events, probe failures, kills, exits, conditions."""

from __future__ import annotations

import re

from oomdoc.ingest import container_events
from oomdoc.ingest.base import TEXT_CAP, Finish, Pattern, Row, pattern, phrases
from oomdoc.ingest.record import utc
from oomdoc.ingest.vocabulary.words import named
from oomdoc.intake.cells import MONTHS
from oomdoc.regexes import regex
from oomdoc.units import parse_age, parse_time

_DATE = regex(r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_AGE = r"(?:<unknown>|<invalid>|(?:\d+[ydhms])+)"
EVENT = regex(
    rf"^\s*(?:(?P<ns>(?!{_AGE}\s)[a-z0-9][\w.-]*)\s+)?(?:(?P<age>{_AGE})(?: \(x(?P<times>\d+)(?: over [^)]*)?\))?\s+)?"
    r"(?P<type>Normal|Warning)\s+(?P<reason>[A-Z][A-Za-z]+)(?:\s+(?P<rest>\S.*))?$"
)
_AFTER_REASON = regex(
    rf"(?P<age>{_AGE})(?: \(x(?P<times>\d+)(?: over [^)]*)?\))?(?:\s+(?P<by>[\w./-]+(?:, \S+)?))?(?:\s+(?P<message>.*))?$"
)
_WIDE_TAIL = regex(rf"\s{{2,}}{_AGE}\s+(?P<times>\d+)\s+\S+\s*$")
_REASONS = named("reasons")
_OWN_COLUMNS = regex(r"[a-z0-9][\w./-]*\s{2,}(?:(?P<times>\d{1,6})\s{2,})?(?!.*\s{2,})\S")
"""Behind the reason, where somebody asked for columns of his own: the object, how often, the message."""
_FIELD = regex(r"^\s*(?:- )?\"?(?:message|reason|note|log|output)\"?\s*:|^\s*\|\s")


def parse_date(text: str) -> float | None:
    """Epoch seconds of a date as `kubectl describe` prints it, or of an ISO stamp; None for neither.

    >>> parse_date("Thu, 19 Nov 2026 05:00:01 +0100"), parse_date("2026-11-19T04:00:01Z")
    (1795060801.0, 1795060801.0)
    """
    match = _DATE.search(text)
    if not match or match[2] not in MONTHS:
        return parse_time(text)
    day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
    moment = utc(year, MONTHS[match[2]], day, hour, minute, second)
    offset = (int(match[8]) * 3600 + int(match[9]) * 60) * (1 if match[7] == "+" else -1)
    return None if moment is None else moment - offset


def event_row(row: Row, match: re.Match[str]) -> Row | None:
    """A row of an event table: `describe` puts the age after the reason, `get events` before the type."""
    rest, reason = match["rest"] or "", match["reason"]
    event: Row = {"type": match["type"], "reason": reason}
    age, times, own = match["age"], match["times"], None
    if age:
        about, _, message = rest.partition(" ")
        event["object"] = about or None
        tail = _WIDE_TAIL.search(message)
        if tail:
            times, message = times or tail["times"], message[: tail.start()]
    else:
        after = _AFTER_REASON.match(rest)
        if after:
            age, times, message = after["age"], after["times"], after["message"] or ""
        elif reason in _REASONS:
            about, *_, message = re.split(r"\s{2,}", rest) if (own := _OWN_COLUMNS.match(rest)) else (None, rest)
            event["object"], times = about, own["times"] if own else times
        else:
            return None
    event["age_s"] = parse_age(age) if age else None
    event["count"] = int(times[:9]) if times else None
    event["message"] = message.strip()[:TEXT_CAP] or None
    event["namespace"] = match["ns"]
    return event


def _alone(reason: str, kind: str | None = None) -> Finish:
    """An event of a statement outside event tables and outside fields of an object, which `read` takes."""

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        if _FIELD.match(match.string):
            return None
        in_table = EVENT.match(match.string)
        if in_table and event_row({}, in_table):
            return None
        statement: Row = {"reason": reason, "message": match.string[match.start() :].strip()[:TEXT_CAP]}
        if kind:
            statement["type"] = kind
        if row.get("object"):
            statement["object"] = row["object"]
        return statement

    return Finish("cluster_event", {"reason": reason}, convert)


def _start(times: str, match: re.Match[str]) -> Row | None:
    return _alone("Restarted" if times.strip("0") else "Started").convert({}, match)


def _oom_killed(row: Row, match: re.Match[str]) -> Row | None:
    return {"reason": "OOMKilled", "message": match.string.strip()[:TEXT_CAP]}


_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "BUS": 7, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15}


def _status(match: re.Match[str]) -> int | None:
    """The exit code of a unit's main process: what it left with, or less the number of the signal, which is told by number or name."""
    if match["how"] == "exited":
        return None if match["status"] is None else int(match["status"])
    number = match["status"] or _SIGNALS.get(match["signal"] or "")
    return None if number is None else -int(number)


def _exit(row: Row, match: re.Match[str]) -> Row | None:
    signal = row.pop("signal", None)
    if signal:
        number = _SIGNALS.get(signal)
        if number is None:
            return None
        row["exit_code"] = -number
    return row


PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "k8s-event-row", "k8s-events",
        phrases(
            "Normal  |Warning  |Warning Unhealthy|Normal Killing|Normal Started|Warning BackOff|"
            "Warning OOMKilling|Warning Evicted|Warning FailedScheduling"
        ),
        (EVENT.pattern,),
        event_row,
        ("  Warning  Unhealthy  9s (x4 over 20s)  kubelet  Startup probe failed: connection refused", {"type": "Warning", "reason": "Unhealthy", "age_s": 9.0, "count": 4, "object": None}),
        ("2m     Normal    Killing     pod/engine-0   Container engine failed liveness probe, will be restarted", {"reason": "Killing", "age_s": 120.0, "object": "pod/engine-0", "count": None}),
        ("prod  7m12s  Warning  BackOff  pod/engine-1  Back-off restarting failed container", {"reason": "BackOff", "age_s": 432.0, "object": "pod/engine-1"}),
        ("  Warning  Evicted  <unknown>  kubelet  The node was low on resource: memory.", {"reason": "Evicted", "age_s": None, "message": "The node was low on resource: memory."}),
        table="cluster_event",
    ),
    pattern(
        "k8s-probe-failed", "k8s-events",
        phrases(
            "probe failed|probe errored|probe timed out|Probe failed|health check|healthcheck|Health check|"
            "eadiness check|probe FAIL|probe fail"
        ),
        (
            r"(?:(?:[Ss]tartup|[Ll]iveness|[Rr]eadiness) (?:probe|check) (?:failed|errored|timed out)"
            # how often it failed in all is told where it is given up
            r"|[Hh]ealth ?check (?:\S+ ){0,2}?(?:failed(?! \d{1,3} times)|timed out|errored)"
            # a watcher of one's own counts its misses
            r"|\bprobe (?:FAIL(?:ED)?|fail(?:ed|ure)?|timed out)\b[^\n]{0,60}?\(\d{1,3}/\d{1,3}\)"
            r"|\"Probe failed\" probeType=\"(?:Startup|Liveness)\"(?: pod=\"(?P<object>[^\"]*)\")?)",
        ),
        _alone("Unhealthy", "Warning"),
        ("supervisor: startup probe failed: GET /health: refused", {"object": None}),
        "keeper WARNING health check failed: ReadTimeout(3.0) GET http://127.0.0.1/health",
        ('prober.go:107] "Probe failed" probeType="Liveness" pod="prod/engine-0" containerName="engine"', {"object": "prod/engine-0"}),
        # a controller of replicas; `workload` counts readiness only where somebody ends what is not ready
        "fleet: readiness check failed for worker 7: status 503",
        "keeper[12]: probe FAIL connection refused (2/3)",
    ),
    pattern(
        "k8s-probe-kill", "k8s-events",
        phrases(
            "probe, will be|exceeded, |sending SIG|Killing container|probe deadline|probe threshold|"
            "not available, restarting|unhealthy, restarting|not responding, restarting|is unhealthy, kill|"
            "unhealthy - |unhealthy. Restart|unhealthy; restart|erminating|eplacing|> ERROR|> FAILED|> UNHEALTHY|"
            "in a row: |did not pass "
        ),
        (
            r"(?:[Cc]ontainer (?P<object>\S+) )?failed (?:liveness|startup) probe, will be (?:restarted|killed)"
            r"|\b(?:liveness|startup|health) ?(?:probe|check)\b[^\n]{0,80}?(?:sending SIG(?:TERM|KILL)|"
            r"(?:deadline|threshold|limit)[^\n]{0,40}?exceeded)|Killing container with a grace period"
            r"|(?:not (?:available|responding|healthy|ready)|unhealthy)(?: (?:and|after|for|beyond|since)\b[^\n]{0,60}?)?(?:,|;|:|\.| -+)? (?:so )?"
            r"(?:[Rr]estarting|[Kk]illing|[Tt]erminating|[Rr]eplacing)\b"
            # a supervisor gives up what ran: its state, and that the probe is why
            r"|\b(?:RUNNING|READY|HEALTHY|SERVING)\b ?[-=]> ?(?:ERROR|FAILED|UNHEALTHY)\b[^\n]{0,60}?\b(?:liveness|startup|health) ?(?:probe|check) (?:\S+ ){0,2}?failed\b"
            r"|\b\d{1,3} (?:failures|misses|failed probes|time-?outs) in a row: [^\n]{0,40}?\b(?:restart|kill|stop|recreate)"
            # a platform that gives an endpoint up
            r"|\bcontainer [^\n]{0,80}?\bdid not pass (?:the |its )?(?:\w+ )?health ?checks?\b",
        ),
        _alone("Killing"),
        ("kubelet: Container engine failed liveness probe, will be restarted", {"object": "engine"}),
        "supervisor: startup probe deadline 30s exceeded, sending SIGTERM to pid=7",
        "keeper ERROR engine reported not available, restarting it",
        "fleet: worker 7 is not ready after 4 checks, replacing it",
        "manager ERROR chat-1 state RUNNING -> ERROR: health check failed 4 times",
        "keeper[12]: 3 failures in a row: podman restart engine",
        "The primary container for variant blue did not pass the ping health check.",
        "04-03-2026 09:11:02 Container /engine (1f5a) found to be unhealthy - Restarting container now with 10s timeout",
    ),
    pattern(
        "k8s-backoff", "k8s-events", ("restarting failed container",),
        (r"[Bb]ack-off (?:\S+ )?restarting failed container",),
        _alone("BackOff", "Warning"),
        "back-off 5m0s restarting failed container=engine pod=engine-0_prod(0a)",
    ),
    pattern(
        "k8s-oomkilled", "k8s-events", ("OOMKilled",),
        (r"[Rr]eason\W{1,24}OOMKilled\b|\b\d+/\d+\s+OOMKilled\s+\d|terminated \(OOMKilled\)",),
        _oom_killed,
        ("      Reason:       OOMKilled", {"reason": "OOMKilled"}),
        table="cluster_event",
    ),
    pattern(
        "k8s-evicted", "k8s-events", ("was low on resource",),
        (r"node was low on resource: (?:memory|ephemeral-storage)",),
        _alone("Evicted", "Warning"),
        "Message: The node was low on resource: memory. Threshold quantity: 100Mi",
    ),
    pattern(
        "supervisor-started", "supervisor", ("restart=", "restarts=", "restart counter is at", "restart_count="),
        (r"\bstarted\b[^\n]{0,120}?\brestart(?:s|_count)?=(?P<times>\d+)|restart counter is at (?P<counter>\d+)",),
        lambda row, match: _start(match["times"] or match["counter"], match),
        ("supervisor: started pid=25818 restart=0", {"reason": "Started", "count": None}),
        ("supervisor: started pid=26160 restart=1", {"reason": "Restarted", "count": None}),
        ("systemd[1]: engine.service: Scheduled restart job, restart counter is at 5.", {"reason": "Restarted"}),
        table="cluster_event",
    ),
    pattern(
        "supervisor-exit", "supervisor", ("exited", "Exited (", "Restarting ("),
        (
            r"\bpid[= ](?P<pid>\d+) exited (?:with )?(?:code|status)?[= ]?(?P<exit_code>-?\d+)"
            r"|(?<![\w.@-])(?P<name>[\w.@-]{1,80}): Main process exited, code=(?:killed|dumped), "
            r"status=\d+/(?P<signal>[A-Z]+)",
        ),
        _exit,
        ("supervisor: pid=25818 exited code=-9", {"pid": 25818, "exit_code": -9}),
        ("systemd[1]: engine: Main process exited, code=killed, status=9/KILL", {"exit_code": -9, "name": "engine"}),
        table="process_exit",
    ),
    pattern(
        "service-exit", "supervisor", ("exited", "Exited (", "Restarting ("),
        (
            r"(?<![\w.@-])(?P<name>[\w.@-]{1,80}): Main process exited, code=exited, status=(?P<exit_code>\d+)"
            r"|\bexited: (?P<program>[\w.:-]{1,80}) "
            r"\((?:exit status (?P<status>\d+)|terminated by SIG(?P<signal>[A-Z]+))"
            r"|^(?:\S{1,80} )?(?P<container>[\w.-]{1,80}) exited with code (?P<code>\d+)\b"
            r"|\b(?:Exited|Restarting) \((?P<docker>\d+)\) ",
        ),
        lambda row, match: _exit(
            {
                "name": match["name"] or match["program"] or match["container"],
                "signal": match["signal"],
                "exit_code": next(
                    (int(code[:9]) for code in match.group("exit_code", "status", "code", "docker") if code), None
                ),
            },
            match,
        ),
        ("systemd[1]: engine: Main process exited, code=exited, status=1/FAILURE", {"exit_code": 1, "name": "engine"}),
        ("INFO exited: engine (terminated by SIGKILL; not expected)", {"exit_code": -9, "name": "engine"}),
        ("engine-1 exited with code 137", {"exit_code": 137, "name": "engine-1"}),
        ("0a1b   vllm-openai   Restarting (1) 5 seconds ago", {"exit_code": 1}),
        table="process_exit",
    ),
    pattern(
        # what `systemctl status` says of a unit that runs no more
        "unit-exit", "supervisor", ("Main PID:",),
        (
            r"^\s*Main PID: (?P<pid>\d{1,9}) \(code=(?P<how>exited|killed|dumped), (?:status|signal)=(?P<status>\d{1,3})?(?:/?(?P<signal>[A-Z]+))?\)",
        ),
        lambda row, match: {
            "name": None,  # of the unit that is asked about
            "exit_code": _status(match),
            "pid": int(match["pid"]),
        },
        ("   Main PID: 41233 (code=exited, status=1/FAILURE)", {"exit_code": 1, "pid": 41233}),
        ("   Main PID: 41233 (code=killed, status=9/KILL)", {"exit_code": -9}),
        ("   Main PID: 41233 (code=killed, signal=KILL)", {"exit_code": -9}),
        table="process_exit",
    ),
    pattern(
        # what a script that ran the server writes down of its end, in a line of its own
        "exit-alone", "shell", ("exit status ", "exit code ", "wait status "),
        (
            r"^\s*(?:exit (?:status|code) (?P<exit_code>\d{1,3})(?:, \d{1,3})*|wait status \d{1,5} \((?:exit (?P<code>\d{1,3})|signal (?P<signal>\d{1,2}))\))\s*$",
        ),
        lambda row, match: {
            "exit_code": -int(match["signal"]) if match["signal"] else int(match["exit_code"] or match["code"])
        },
        ("exit status 137", {"exit_code": 137}),
        ("exit code 1", {"exit_code": 1}),
        ("wait status 11 (signal 11)", {"exit_code": -11}),
        ("wait status 256 (exit 1)", {"exit_code": 1}),
        table="process_exit",
    ),
    pattern(
        "k8s-memory-pressure", "k8s-node", ("MemoryPressure ",),
        (r"^\s*MemoryPressure\s+True\s+(?P<message>\S.*)$",),
        lambda row, match: {
            "type": "Warning",
            "reason": "MemoryPressure",
            "t": parse_date(re.split(r"\s{2,}(?=[A-Z][a-z]{2}, )", match[0])[-1]),
            "message": match[0].strip()[:TEXT_CAP],
        },
        (
            "  MemoryPressure   True    Fri, 20 Nov 2026 20:04:51 +0000   Fri, 20 Nov 2026 20:00:51 +0000   "
            "KubeletHasInsufficientMemory   kubelet has insufficient memory available",
            {"type": "Warning", "reason": "MemoryPressure", "t": 1795204851.0},
        ),
        table="cluster_event",
    ),
    *container_events.PATTERNS,
)  # fmt: skip
"""Statements of the cluster, of supervisors and of container runtimes in one line."""
