"""What a container runtime writes of its containers' lives: `docker events`, `podman events`, one event a line.

    2026-03-11T21:04:10.51+01:00 container kill 3f9a1c5d7e0b (image=engine:1, name=chat, signal=15)
    2026-03-11 21:04:20.07 +0000 UTC container died 3f9a1c5d7e0b (image=engine:1, name=chat, containerExitCode=137)

A `kill` is a signal that somebody had the runtime send (`docker stop`, a supervisor, a person); the kernel's own kills are
none and come as `oom`, which `host_events` reads. Sources of the form: docs.docker.com/reference/cli/docker/system/events,
docs.podman.io/en/latest/markdown/podman-events.1.html.
"""

from __future__ import annotations

import re

from oomdoc.ingest.base import TEXT_CAP, Finish, Pattern, Row, pattern
from oomdoc.regexes import regex

_WHICH = r"(?P<id>[\w.-]{1,64})(?: \((?P<about>.*)\))?"
_NAME = regex(r"(?:\bname|compose\.service)=(?P<name>[\w.-]{1,80})")
_IMAGE = regex(r"\bimage=(?P<image>[^\s,)]{1,200})")
_STATUS = regex(r"\b(?:exitCode|containerExitCode)=(?P<status>-?\d{1,3})\b")
_SIGNAL = regex(r"\bsignal=(?:SIG)?(?P<signal>\w{1,6})\b")
_NO_END = frozenset(("1", "10", "12", "17", "18", "28", "HUP", "USR1", "USR2", "CHLD", "CONT", "WINCH"))
"""Signals that ask a program to read its settings or open its logs anew, and not to end (signal(7), by number on Linux and by name)."""
_ID = regex(r"[0-9a-f]{4,64}")


def _named(match: re.Match[str]) -> str | None:
    """The container of an event by its name, its image in brackets where that is told; None where only an id is told."""
    about = match["about"] or ""
    told, image = _NAME.search(about), _IMAGE.search(about)
    name = told["name"] if told else None if _ID.fullmatch(match["id"]) else match["id"]
    return f"{name} ({image['image']})" if name and image else name


def _order(topic: str, verb: str) -> Finish:
    """A `note` of an order: its text is the verb, and the container's name where one is told."""

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        told = _SIGNAL.search(match[0])
        if told and told["signal"].upper() in _NO_END:
            return None
        return {"topic": topic, "value": None, "text": f"container {verb} {_named(match) or ''}".rstrip()}

    return Finish("note", {"topic": topic}, convert)


def _exit(row: Row, match: re.Match[str]) -> Row | None:
    status = _STATUS.search(match["about"] or "")
    return {"name": _named(match), "exit_code": int(status["status"])} if status else None


def _unhealthy(row: Row, match: re.Match[str]) -> Row:
    return {"type": "Warning", "reason": "Unhealthy", "object": _named(match), "message": match.string.strip()[:TEXT_CAP]}  # fmt: skip


PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "container-died", "container-runtime", ("container die ", "container died "),
        (rf"\bcontainer died? {_WHICH}\s*$",),
        _exit,
        (
            "2026-03-11T21:04:20.07+01:00 container die 3f9a1c5d7e0b (execDuration=160, exitCode=137, image=e:1, name=chat)",
            {"name": "chat (e:1)", "exit_code": 137},
        ),
        (
            "2026-03-11 21:04:20.07 +0000 UTC container died 3f9a (image=e:1, name=chat, containerExitCode=1)",
            {"name": "chat (e:1)", "exit_code": 1},
        ),
        ("2026-03-11T21:04:20 container die chat (exitCode=0)", {"name": "chat", "exit_code": 0}),
        ("2026-03-11T21:04:20Z container die 5f11c2a9 (com.docker.compose.service=chat, execDuration=101, exitCode=1)", {"name": "chat", "exit_code": 1}),
        table="process_exit",
    ),
    pattern(
        "container-signalled", "container-runtime", ("container kill ",),
        (rf"\bcontainer kill (?:\(signal=\w{{1,8}}\) )?{_WHICH}\s*$",),
        _order("stop-asked", "kill"),
        (
            "2026-03-11T21:04:10.51+01:00 container kill 3f9a1c5d7e0b (image=e:1, name=chat, signal=15)",
            {"text": "container kill chat (e:1)"},
        ),
    ),
    pattern(
        "container-started", "container-runtime", ("container start ",),
        (rf"\bcontainer start {_WHICH}\s*$",),
        _order("unit-started", "start"),
        ("2026-03-11T21:04:40.51+01:00 container start 3f9a1c5d7e0b (image=e:1)", {"text": "container start"}),
    ),
    pattern(
        "container-unhealthy", "container-runtime", ("container health_status: unhealthy ",),
        (rf"\bcontainer health_status: unhealthy {_WHICH}\s*$",),
        Finish("cluster_event", {"reason": "Unhealthy"}, _unhealthy),
        (
            "2026-03-11T21:04:00.51+01:00 container health_status: unhealthy 3f9a1c5d7e0b (image=e:1, name=chat)",
            {"object": "chat (e:1)"},
        ),
        table="cluster_event",
    ),
)  # fmt: skip
"""Ends, signals, starts and failed health checks of containers."""
