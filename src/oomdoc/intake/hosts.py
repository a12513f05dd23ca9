"""Which host each line of a text is of, where somebody put the outputs of several hosts into one.

    == node-a ==        ----------------      node-a | CHANGED | rc=0 >>      root@node-a:~# nvidia-smi
    ...                 node-a                ...                             ...
    == node-b ==        ----------------      node-b | CHANGED | rc=0 >>      $ ssh node-b nvidia-smi

    node-a: |   0  NVIDIA H100 80GB HBM3 ...      a name before each line: pdsh, compose, a loop that says who answers

A word above an output may as well be a moment (`== before ==`), a card (`== gpu1 ==`) or a heading of a page. So it names a host only if it says
so, or if all of them are one name counted on: `node-a`, `node-b`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oomdoc.regexes import regex

_NAME = r"[A-Za-z0-9](?:[\w.-]{0,80}[A-Za-z0-9])?"
_KINDS = ("host", "node", "pod", "server", "machine", "box", "instance", "vm")
_SAID = tuple(
    (hints, regex(form))
    for hints, form in (
        ((">>",), rf"\s*(?P<name>{_NAME}) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)\b.{{0,40}}>>\s*$"),  # ansible
        (_KINDS, rf"(?i)[\s=#*>~-]*(?:{'|'.join(_KINDS)})s? ?(?:name)?[:=]? ?[`'\"(*]{{0,3}}(?P<name>{_NAME})[`'\")*]{{0,3}}[\s=#*<~:-]*$"),
        (("@",), rf"\s*(?:\([\w.-]{{1,40}}\) ?)?\[?[\w.-]{{1,40}}@(?P<name>{_NAME})[: ][^$#%\n]{{0,80}}[$#%]\s"),  # a prompt
        (("ssh ",), rf"[^\w\n]{{0,10}}ssh(?: -[bcDeFiJLlmopRW] ?\S+| -\S+){{0,6}} (?:[\w.-]{{1,40}}@)?(?P<name>{_NAME})(?: .*)?$"),
        ((" exec", " rsh"), rf"[^\w\n]{{0,10}}(?:kubectl|oc|docker|podman|nerdctl|crictl)(?: (?:-n|--namespace|--context)[ =]\S+| -\S+){{0,6}} (?:exec|rsh)(?: (?:-n|-c|--namespace|--container)[ =]\S+| -\S+){{0,6}} (?:pods?/)?(?P<name>{_NAME})(?: .*)?$"),
    )
)  # fmt: skip
"""Lines that say of what they name that it is a host, or a container."""
_ABOVE = regex(rf"\s*(?:[=#*~>-]{{1,40}} ?\**(?P<name>{_NAME})\**:?[\s=#*~<-]*|(?P<alone>{_NAME}):?\s*)$")
_DASHES = regex(r"\s*[-=]{3,}\s*$")
_BEFORE = regex(rf"(?:\[(?P<inside>{_NAME})\]|(?P<name>{_NAME})(?=: | ?\||\t|:$))(?:: ?| ?\| ?|\t| )?")
_STEM = regex(r"(?P<stem>.*?)[-_.]?(?:\d{1,6}|(?<![a-z])[a-z])$")
_NO_HOSTS = frozenset((
    "run", "step", "try", "attempt", "start", "t", "sample", "iteration", "iter", "test", "config", "round", "phase", "day", "snapshot",
    "take", "pass", "part", "section", "figure", "table", "gpu", "cuda", "device", "card", "rank", "tp", "dp", "pp", "ep", "case", "fig",
    "screen", "output", "v", "version", "option", "scenario", "variant", "batch", "stage", "level",
))  # fmt: skip
"""What is numbered and is no host."""
_PADDED = regex(r"\D0\d{1,3}$")
_MOST_BEFORE = 0.9
"""Share of the lines with a name before them."""
_LEAST_LINES = 2
_LONGEST = 160  # a line that is a name and strokes


def owners(lines: Sequence[str]) -> list[str]:
    """The host of each line by what stands above it; "" before the first name, and everywhere in a text that names fewer than two.

    >>> owners(["== node-a ==", "1", "== node-b ==", "2"])
    ['node-a', 'node-a', 'node-b', 'node-b']
    >>> owners(["== before ==", "1", "== after ==", "2"]), owners(["$ ssh -p 22 ops@h7 nvidia-smi", "1", "ops@h8:~$ nvidia-smi", "2"])
    (['', '', '', ''], ['h7', 'h7', 'h8', 'h8'])
    """
    said = [_said(line) for line in lines]
    if len({*filter(None, said)}) < _LEAST_LINES:
        said = [_above(lines, at) for at in range(len(lines))]
        if not _counted_on({*filter(None, said)}):
            return [""] * len(lines)
    whose: list[str] = []
    for name in said:
        whose.append(name or (whose[-1] if whose else ""))
    return whose


def _said(line: str) -> str:
    if len(line) > 400:
        return ""
    low = line.lower()
    return next((found["name"] for hints, form in _SAID if any(hint in low for hint in hints) and (found := form.match(line))), "")  # fmt: skip


def _above(lines: Sequence[str], at: int) -> str:
    """The name that a line is, between strokes or before a colon, or between two lines of strokes."""
    found = _ABOVE.match(lines[at]) if len(lines[at]) < _LONGEST else None
    if found is None:
        return ""
    ruled = 0 < at < len(lines) - 1 and bool(_DASHES.match(lines[at - 1]) and _DASHES.match(lines[at + 1]))
    alone = found["alone"] if ruled or lines[at].rstrip().endswith(":") else None
    return found["name"] or alone or ""


def _counted_on(names: Collection[str]) -> bool:
    """Whether names are one name that is counted on, and no moments, cards or parts of a page; `gpu-01` is a host, no card is numbered so.

    >>> _counted_on({"node-a", "node-b"}), _counted_on({"gpu0", "gpu1"}), _counted_on({"before", "after"}), _counted_on({"node-a"})
    (True, False, False, False)
    >>> _counted_on({"gpu-01", "gpu-02"}), _counted_on({"run-01", "run-02"})
    (True, False)
    """
    found = [_STEM.match(name.lower().partition(".")[0]) for name in names]
    stems = {match["stem"] if match else "" for match in found}
    padded = stems == {"gpu"} and any(_PADDED.search(name) for name in names)
    return len(found) >= _LEAST_LINES and len(stems) == 1 and (padded or not stems & {"", *_NO_HOSTS})


_NO_WRITER = regex(r"[^\w.-]+")


def writer_of(host: str, hosts: dict[str, str]) -> str:
    """What a host's part of a source is called, among the `hosts` that were asked for: "" of the first."""
    return hosts.setdefault(host, _NO_WRITER.sub("-", host)[:63] if hosts else "")


def apart(data: bytes) -> list[tuple[str, bytes]]:
    """The text of each host, in the order in which they come, every line where it stood; nothing for a text of fewer than two.

    >>> apart(b"n1: 0, 5\\nn2: 0, 7\\nn1: 1, 6\\nn2: 1, 8\\n")
    [('n1', b'0, 5\\n\\n1, 6\\n\\n'), ('n2', b'\\n0, 7\\n\\n1, 8\\n')]
    """
    lines = data.decode("utf-8", "replace").split("\n")
    filled = [line for line in lines if line.strip()]
    before = [(match["inside"] or match["name"]) if (match := _BEFORE.match(line)) else "" for line in lines]
    counts = {name: before.count(name) for name in {*before} - {""}} if len({*before}) <= 1 + len(filled) // 2 else {}
    if len(counts) >= _LEAST_LINES and min(counts.values()) >= _LEAST_LINES and sum(counts.values()) >= _MOST_BEFORE * len(filled):  # fmt: skip
        whose = before
        lines = [_BEFORE.sub("", line, count=1) if name else line for line, name in zip(lines, before, strict=True)]
    else:
        whose = owners(lines)
    return [
        (name, "\n".join(line if of == name else "" for line, of in zip(lines, whose, strict=True)).encode())
        for name in dict.fromkeys(filter(None, whose))
    ] if len({*whose} - {""}) >= _LEAST_LINES else []  # fmt: skip
