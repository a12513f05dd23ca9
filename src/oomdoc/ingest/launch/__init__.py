r"""How the server was started: shell commands, Python constructors, environments, compose, stage and config files.

    CUDA_VISIBLE_DEVICES=0,1 vllm serve org/model -tp 2 \          engine_args:
      --gpu-memory-utilization 0.95 --no-enable-prefix-caching        gpu_memory_utilization: 0.3
    llm = LLM(model="org/model", tensor_parallel_size=2)

Each setting becomes a row of `engine_flag` in the engine's own name with underscores; the value is text as it was typed
(`40G` stays `40G`; a switch alone is `True`, `--no-x` is `x` = `False`). Origins: `command` for options and keyword
arguments, `environment` for variables, `file` for keys of a document. Container options that bound memory become
`note` rows of topic `shm-size` and `container-limit`, value in bytes. Unresolved shell variables are left out.

`flags_of`, `flags_of_tokens`, `read_document` and `image_version` serve other ingestors. Nothing here runs anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import HEAD_BYTES, Head, Rows, beginning
from oomdoc.ingest.launch.calls import calls_in
from oomdoc.ingest.launch.commands import (
    COMMAND_WORDS,
    ECHO_ANCHORS,
    flags_of,
    flags_of_tokens,
    launched,
    segments,
    settings_of,
    typed,
)
from oomdoc.ingest.launch.documents import read_document
from oomdoc.ingest.launch.manifests import document_settings, health_check
from oomdoc.ingest.launch.names import ENGINE_FLAGS, Setting, image_version, is_environment, shown
from oomdoc.ingest.launch.shell import ASSIGNMENT, prepared
from oomdoc.ingest.record import BRACKETED, HEAD
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import KIB, parse_size

__all__ = [
    "ECHO_ANCHORS",
    "ENGINE_FLAGS",
    "KIND",
    "flags_of",
    "flags_of_tokens",
    "health_check",
    "image_version",
    "is_environment",
    "is_nul_separated",
    "launched",
    "matches",
    "read",
    "read_document",
    "shown",
    "typed",
]

KIND = "launch"
CAP_BYTES = 1 << 20  # nobody starts a server with more
_NUL_WORDS = regex(rb"[\t\x20-\x7e\x80-\xff]+(?:\0[\t\n\x20-\x7e\x80-\xff]*)+\n?")
_NUL_MARKS = regex(rb"\bvllm\b|\b(?:VLLM|CUDA|PYTORCH)_[A-Z_]+=")


def is_nul_separated(head: Head) -> bool:
    """Whether this is a command line or an environment as `/proc/PID` shows them: words with NUL between, an engine's."""
    data = head.data
    return (
        b"\0" in data[:4096] and len(data) < HEAD_BYTES and bool(_NUL_MARKS.search(data) and _NUL_WORDS.fullmatch(data))
    )


def _text_of(data: bytes) -> str:
    """The text of a source; words between NULs quoted as in a shell, so that what one word was stays one."""
    if b"\0" in data and _NUL_WORDS.fullmatch(data):
        words = data.decode("utf-8", "replace").rstrip("\n\0").split("\0")
        if all(ASSIGNMENT.fullmatch(word) for word in words):
            return "export " + " ".join(shlex.quote(word) for word in words)
        return " ".join(shlex.quote(word) for word in words)
    return data.decode("utf-8", "replace").replace("\x00", " ")


_LOG_LINE = regex(
    r"\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d|(?:\w+\.)*\w*(?:Error|Exception|Warning)\b: |"
    r"INFO: +\S|\[\s*\d+\.\d{3,}\]|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s|"
    + BRACKETED
    + r"|\w{3} +\d+ \d\d:\d\d:\d\d |\([\w.:-]+(?: rank=\d+)? pid=\d+)"
)
_COMMENT = regex(r"\s*(?:#|//|<!--|rem )", re.I)
_KEY_VALUE = regex(r"\s*(?:export |set |ENV |- |declare -x )?[A-Za-z_][\w.]*[ \t]*=[ \t]*\S*")
_YAML_LINE = regex(r"\s*(?:- )*(?:[\"']?[A-Za-z_][\w./-]*[\"']?:(?:\s|$)|- \S)")
_OPTION_LINE = regex(r"\s*(?:- )?[\"']?--?[A-Za-z]")
_CODE_LINE = regex(
    r"\s*(?:import |from \S+ import |def |if |else|fi\b|for |done|class |return|with |[)\]}]|@|[\w.]+\(|[\w., ]{1,200} = )"
)
_PROSE = regex(r"\s*(?:[-*] )?[A-Za-z][a-z']*(?: [a-z0-9'%,.-]+){4,}")


def is_log(lines: Iterable[str]) -> bool:
    """Whether these lines are a log or hold part of one: nobody shall take it for a command or a note."""
    told = heads = 0
    for line in lines:
        told += bool(line.strip())
        match = HEAD.match(line)
        heads += bool((match and (match["mon"] or match["src"])) or _LOG_LINE.match(line))
    return heads > max(0, told // 10)


def _is_ruled(line: str) -> bool:
    """Whether a line is a row of a table with bars: options that head its columns were tried, and are no command."""
    return line.lstrip().startswith("|") and line.rstrip().endswith("|") and line.count("|") > 2


def matches(head: Head) -> bool:
    """A small text that is a command, an option list, a constructor, an environment or a server's config file."""
    nul = is_nul_separated(head)
    if len(head.data) >= HEAD_BYTES or (b"\x00" in head.data and not nul) or is_log(head.lines):
        return False
    text = _text_of(head.data)
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not re.search(r"[=:-]|vllm", text) or sum(map(_is_ruled, lines)) * 2 > len(lines):
        return False
    found, document = _everything(text)
    if not found:
        return False
    if document:
        return any(one.origin != "environment" or one.flag.startswith(("VLLM_", "CUDA_", "PYTORCH_")) for one in found)
    prose = sum(bool(_PROSE.match(line)) and not _is_shape(line) and not _is_command(line) for line in lines)
    if prose * 2 > len(lines):
        return False
    if _begins_a_command(text) or sum(bool(_KEY_VALUE.match(line) or _COMMENT.match(line)) for line in lines) >= 0.7 * len(lines):  # fmt: skip
        return True
    return any(one.origin in ("command", "bound") for one in found) and prose == 0 and all(map(_is_shape, lines))


def _is_shape(line: str) -> bool:
    shapes = (_COMMENT, _KEY_VALUE, _YAML_LINE, _OPTION_LINE, _CODE_LINE)
    return any(shape.match(line) for shape in shapes) or line.rstrip().endswith("\\")


def _is_command(line: str) -> bool:
    """Whether a line that reads like a sentence is a command: a known program, and two options at least."""
    words = line.split()
    name = words[0].rpartition("/")[2].lower()
    return (name in COMMAND_WORDS or name.startswith("python")) and sum(word.startswith("-") for word in words) > 1


def _begins_a_command(text: str) -> bool:
    """Whether some line begins as a command or constructor: a known program, an option, an assignment before one."""
    text = prepared(text)
    if calls_in(text)[0]:
        return True
    for words in segments(text):
        for word in words:
            if ASSIGNMENT.fullmatch(word.text) or word.text in ("export", "set", "ENV", "exec", "\\"):
                continue
            name = word.text.rpartition("/")[2].strip('[]",').lower()
            if (
                name in COMMAND_WORDS
                or name.startswith("python")
                or word.text.startswith("--")
                or name.endswith((".sh", ".py"))
            ):
                return True
            break
    return False


def _everything(text: str) -> tuple[list[Setting], bool]:
    """All settings of a text, and whether it was read as a document."""
    text = _as_of_now(text)
    lines = [line for line in text.split("\n") if line.strip() and not _COMMENT.match(line)]
    keyed = sum(bool(_YAML_LINE.match(line)) for line in lines)
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") or keyed * 10 >= 8 * len(lines) > 0:
        found = [one for document in read_document(text) for one in document_settings(document)]
        if found:
            return [one._replace(line=one.line or _where(text, one)) for one in found], True
    if lines and keyed * 2 > len(lines):
        text = re.sub(r"(?m)^(\s*)- (?=[\"']?-)", r"\1", text)
    return settings_of(text), False


_NEW_LINE = regex(r"(?m)^\+(?=[ \t]|[\w\"'-])(?!\+\+)")
_OLD_LINE = regex(r"(?m)^-(?!--)[^\n]*")


def _as_of_now(text: str) -> str:
    """A text with the marks of a `diff` as it is after the change: what was taken out is empty, no line moves.

    >>> _as_of_now("llm:\\n  image: a\\n-  tp: 2\\n+  tp: 4\\n")
    'llm:\\n  image: a\\n\\n   tp: 4\\n'
    """
    return _OLD_LINE.sub("", _NEW_LINE.sub(" ", text)) if _NEW_LINE.search(text) else text


def _where(text: str, one: Setting) -> int:
    """The line of a setting in JSON, whose parser tells none: the first place of its name."""
    at = max(text.find(one.flag), text.find(one.flag.replace("_", "-")))
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


_ASKED = regex(r"\bprompt_logprobs\"?\s*[=:]\s*[1-9]\d*|\becho\"?\s*[=:]\s*[Tt]rue\b")  # in a script that also asks
_TMPFS = regex(r"mount\s[^\n;&|']{0,80}?\bsize=(?P<size>[\d.]+[kKmMgG]?)[^\n;&|']{0,80}?/dev/shm")
_UNIT_LIMIT = regex(r"\bMemoryMax=(?P<size>[\d.]+[KMGT]?)")
_JOB_LIMIT = regex(r"^#SBATCH[ \t](?:[^\n#]{0,200}[ \t])?--mem[= ](?P<size>[\d.]+[KMGT]?)", re.M)
"""What a job of Slurm may hold on each node; a number without a unit is in MiB (sbatch(1))."""


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `engine_flag` in the order of the text, and `note` rows for the limits it sets."""
    rows = Rows()
    data = beginning(chunks, CAP_BYTES)
    text = _text_of(data[:CAP_BYTES])
    if len(data) > CAP_BYTES:
        rows.problem(1, "a launch text of more than 1 MiB: only its beginning was read", text)
    found, _ = _everything(text)
    flags = [one for one in found if one.origin != "bound"]
    several = len({one.engine for one in flags if one.origin != "environment"}) > 1
    seen: set[tuple[str, str, str, int]] = set()
    for one in flags:
        key = (one.flag, one.value, one.origin, one.engine)
        if key not in seen:
            seen.add(key)
            process = f"engine {one.engine}" if several else None
            rows.add(
                "engine_flag", max(1, one.line), flag=one.flag, value=one.value, origin=one.origin, process=process
            )
    # of several services the limits of those that an engine runs in
    engines = {one.engine for one in flags if one.origin in ("command", "file")}
    bounds = [one for one in found if one.origin == "bound"]
    own = [one for one in bounds if one.engine in engines or one.flag not in ("container-limit", "health-check")]
    _bounds(rows, text, own if any(one.engine in engines for one in bounds) else bounds)
    asked = _ASKED.search(text)
    if asked:
        line = text.count("\n", 0, asked.start()) + 1
        rows.add("note", line, topic="prompt-logprobs", text=asked[0][:300])
    if not rows.count and text.strip():
        rows.problem(1, "a launch command or config without one readable setting", text.strip())
    yield from rows.take()


def _bounds(rows: Rows, text: str, bounds: list[Setting]) -> None:
    """Limits that a command sets: shared memory, container memory, devices."""
    devices = [one for one in bounds if one.flag == "devices" and len(one.value) < 6]
    if devices:  # of several containers the one with most: each has its own
        most = max(devices, key=lambda one: int(one.value))
        rows.add("gpu_device", max(1, most.line), count=int(most.value))
    for one in dict.fromkeys(
        one._replace(engine=0) for one in bounds if one.flag != "devices"
    ):  # services may share a part of a document
        size = _binary(one.value)
        if one.flag == "health-check":
            rows.add("note", max(1, one.line), topic=one.flag, text=one.value)
        elif size:
            rows.add("note", max(1, one.line), topic=one.flag, value=size, text=f"{one.flag} {one.value}"[:300])
    for topic, shape, unit in (
        ("shm-size", _TMPFS, ""),
        ("container-limit", _UNIT_LIMIT, ""),
        ("container-limit", _JOB_LIMIT, "M"),
    ):
        for match in shape.finditer(text):
            printed = match["size"]
            if size := _binary(printed + unit if printed[-1].isdigit() else printed):
                line = text.count("\n", 0, match.start()) + 1
                rows.add("note", line, topic=topic, value=size, text=match[0][:300])


def _binary(printed: str) -> int | None:
    """Bytes of a container size: `64m`, `2g`, `10.24gb` are binary, a plain number is bytes."""
    size = parse_size(printed, binary=True)
    return size if size and size >= KIB else None
