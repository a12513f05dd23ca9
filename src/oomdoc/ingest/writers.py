"""Logs of several engines in one file, taken apart: `kubectl logs -l app=... --prefix`, `docker compose logs`, a syslog of many hosts.

What stands before each line names its writer. Two engines read as one would share a clock, a process name, a pool and a life, so
each gets a reader of its own, and its rows a source of its own: `all.log[llm-1]`. The first engine of a file keeps `all.log`, and so
does everything that no engine wrote. Lines keep their numbers: for the others they are empty.

Ranks of one engine (`srun -l`, Ray) stay together. In a session what `kubectl logs POD` or `docker logs NAME` answered is of that pod or
container, up to the next command.
"""

from __future__ import annotations

import re

from oomdoc.ingest.prompts import typed
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
_LOGS = regex(
    r"(?:sudo )?(?:kubectl|oc|docker|podman|nerdctl|crictl)(?: -\S+(?: (?!logs )[\w.-]+)?)* logs (?P<asked>[^|>#;&]*)"
)
_TYPED = regex(rb"\b(?:kubectl|oc|docker|podman|nerdctl|crictl)\b[^\n]{0,80} logs ")
_OPTION = regex(
    r"(?<!\S)(?:-[nct]|--(?:namespace|container|tail|since|since-time|until|context|limit-bytes))[ =]\S+|(?<!\S)-\S+|(?<!\S)\d(?=\s*$)"
)
_STARTS = regex(
    r"^[\w./ =-]{0,80}\b(?:run|up|start|restart|apply|create|install|upgrade|rollout|scale|serve)\b(?![-.])"
)
_NAMED = regex(r"\s*(?:[a-z.]{2,40}/)?([A-Za-z0-9][\w.-]{0,252})\s*")
_ANY = tuple(regex(form, re.M) for form in _FORMS)
_ENGINE = tuple(regex(form + _RECORD, re.M) for form in _FORMS)

_AT_WORK = tuple(regex(form + rb"(?:" + _RECORD + rb"|[^\n]{0,120}?(?:llama_\w{3,30}: |\b(?:srv|slot) +\w{3,30}: |Decode batch))", re.M) for form in _FORMS)  # fmt: skip
"""Lines that only a server of language models writes."""
_FAILED = tuple(regex(form + rb"[^\n]{0,120}?OutOfMemoryError: CUDA out of memory", re.M) for form in _FORMS)


class Writers:
    """Who wrote which lines of one source, as far as it was read."""

    def __init__(self) -> None:
        self._form: int | None = None
        self._begun = False
        self._first = b""
        self._apart: set[bytes] = set()
        self._serving: set[bytes] = set()
        self._typed = False
        self._answers = b""
        self._starts = False

    def split(self, chunk: Chunk) -> list[tuple[str, Chunk]]:
        """The chunk by writer; "" is the first engine and everybody who is none. Mostly that is all of it."""
        if not self._begun:
            self._begun = True
            self._form = _form_of(chunk.data)
            self._typed = b" logs " in chunk.data and _TYPED.search(chunk.data) is not None
        if self._form is None:
            return self._by_command(chunk) if self._typed else [("", chunk)]
        engines = list(dict.fromkeys(_ENGINE[self._form].findall(chunk.data)))
        if not self._first and engines:
            self._first = engines[0]
        if b"OutOfMemoryError: " in chunk.data and (failed := set(_FAILED[self._form].findall(chunk.data))):
            self._serving |= set(_AT_WORK[self._form].findall(chunk.data))
            # a program beside the server that ran out of memory: its message is its own
            self._apart |= failed - self._serving if self._serving else set()
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
        return _parts(chunk, owner, lines)

    def _by_command(self, chunk: Chunk) -> list[tuple[str, Chunk]]:
        """What commands for logs were answered, each by whose log was asked for. A session that starts a server is about that one."""
        lines = _lines(chunk.data)
        owner: list[bytes] = []
        for line in lines:
            command = typed(line[:400].decode("utf-8", "replace"))
            if command is not None:
                self._starts = self._starts or _STARTS.search(command) is not None
                self._answers = b"" if self._starts else logged(command).encode()
            owner.append(self._answers if command is None else b"")
        return _parts(chunk, owner, lines)


def logged(command: str) -> str:
    """Whose log a command asks for; "" for another command, or one that names several.

    >>> logged("kubectl -n llm logs rank-0 --previous | tail -2"), logged("docker logs --tail 14 web1 2>&1"), logged("kubectl logs -l app=x"), logged("oc logs deploy/web")
    ('rank-0', 'web1', '', 'web')
    """
    found = _LOGS.match(command)
    named = _NAMED.fullmatch(_OPTION.sub("", found["asked"])) if found and " -l" not in command else None
    return named[1] if named else ""


def _parts(chunk: Chunk, owner: list[bytes], lines: list[bytes]) -> list[tuple[str, Chunk]]:
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
