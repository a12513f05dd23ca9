"""Logs of several engines in one file, taken apart: `kubectl logs -l app=... --prefix`, `docker compose logs`, a syslog of many hosts.

What stands before each line names its writer. Two engines read as one would share a clock, a process name, a pool and a life, so
each gets a reader of its own, and its rows a source of its own: `all.log[llm-1]`. The first engine of a file keeps `all.log`, and so
does everything that no engine wrote. Lines keep their numbers: for the others they are empty.

Ranks of one engine (`srun -l`, Ray) stay together.
"""

from __future__ import annotations

import re

from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

_HEAD_LINES = 200
_STAMP = rb"(?:\d{4}-\d\d-\d\dT[\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)? )"
_COLOUR = rb"(?:\x1b\[[\d;]{0,8}m)?"
_FORMS = tuple(
    rb"^" + _COLOUR + form
    for form in (
        _STAMP + rb"?\[pod/([\w.-]{1,253})/[\w.-]{1,63}\]",  # kubectl, and what `unwrap` writes for Loki
        rb"([A-Za-z0-9][\w.-]{0,62}) +\| ",  # compose
        rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? ([\w.-]{1,253}) [\w./@()-]{1,80}(?:\[\d{1,10}\])?: ",  # syslog
        _STAMP + rb"([\w.-]{1,253}) [\w./@()-]{1,80}(?:\[\d{1,10}\])?: ",  # journald, rsyslog
    )
)
_FORMS += (
    # JSON lines of a collector that name the pod anywhere in the object
    rb"^\{(?=[^\n]{0,1000}?\"(?:pod|pod_name|podName|k8s\.pod\.name|kubernetes\.pod_name)\" ?: ?\"([\w.-]{1,253})\")[^\n]{0,300}?",
    # or, of a platform without pods, the replica or its box; a host or an instance of a cloud is none: ranks of one engine stand on several
    rb"^\{(?=[^\n]{0,1000}?\"(?:replica|replica_id|container_name|container|sandbox|task_id)\" ?: ?\"([\w.-]{1,253})\")[^\n]{0,300}?",
)
_RECORD = rb"[^\n]{0,120}?(?<![A-Z])(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:\d\d-\d\d \d\d:\d\d:\d\d )?\[?[\w./-]{1,80}\.py:\d"
"""A record of the engine behind a prefix (vllm/logger.py, 0.1.7 to 0.30)."""
_ANY = tuple(regex(form, re.M) for form in _FORMS)
_ENGINE = tuple(regex(form + _RECORD, re.M) for form in _FORMS)


class Writers:
    """Who wrote which lines of one source, as far as it was read."""

    def __init__(self) -> None:
        self._form: int | None = None
        self._begun = False
        self._first = b""
        self._apart: set[bytes] = set()

    def split(self, chunk: Chunk) -> list[tuple[str, Chunk]]:
        """The chunk by writer; "" is the first engine and everybody who is none. Mostly that is all of it."""
        if not self._begun:
            self._begun = True
            self._form = _form_of(chunk.data)
        if self._form is None:
            return [("", chunk)]
        engines = list(dict.fromkeys(_ENGINE[self._form].findall(chunk.data)))
        if not self._first and engines:
            self._first = engines[0]
        if not self._apart and all(name == self._first for name in engines):
            return [("", chunk)]
        return self._by_line(chunk)

    def _by_line(self, chunk: Chunk) -> list[tuple[str, Chunk]]:
        assert self._form is not None
        prefix, record = _ANY[self._form], _ENGINE[self._form]
        lines = _lines(chunk.data)
        owner: list[bytes] = []
        for line in lines:
            found = prefix.match(line)
            name = found[1] if found else b""
            if name and name != self._first and name not in self._apart and record.match(line):
                self._apart.add(name)
            owner.append(name if name in self._apart else b"")
        return [
            (name.decode("ascii", "replace"), chunk._replace(data=_of(name, owner, lines)))
            for name in sorted({b"", *owner})
        ]


def _form_of(data: bytes) -> int | None:
    """Which prefix most of the first lines have."""
    lines = [line for line in data[: 64 << 10].split(b"\n")[:_HEAD_LINES] if line.strip()]
    for place, form in enumerate(_ANY):
        if 2 * sum(form.match(line) is not None for line in lines) > len(lines):
            return place
    return None


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _of(name: bytes, owner: list[bytes], lines: list[bytes]) -> bytes:
    return b"".join(
        line if whose == name else b"\n" if line.endswith(b"\n") else b""
        for whose, line in zip(owner, lines, strict=True)
    )
