"""Lists of installed packages: `pip list`, `pip freeze`, `conda list`, a file of requirements; and what an installation prints.

    vllm                 0.9.2              vllm==0.9.2
    torch                2.7.0              torch==2.7.0

The engine's release is a setting (`engine_flag`, origin `file`). Names of other packages say nothing: that an adapter library is
installed is no adapter in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "package-list"

_LINE_CAP = 400
_PACKAGE = regex(
    r"\s*(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?(?:\s*(?:==|~=|>=|<=|@|=)\s*|\s+)v?(?P<version>\d+(?:\.\w+)+[\w.+!-]*)(?:\s+\S+){0,2}\s*$"
)
_AROUND = regex(r"\s*(?:#.*|Package\s+Version.*|[- ]+|-[rec] \S+.*|--\S+.*)$")
_RELEASE = regex(r"\s*vllm(?:\[[\w,-]+\])?(?:==|\s+)v?\d")


_INSTALLING = regex(
    r"[uirph][ncUHFWti] {2}\S+ +\S*\d\S* +(?:amd64|arm64|all|i386) |Desired=Unknown|\|\|/ Name|"  # dpkg -l
    r"(?:[\d:T., +-]{8,40})?\s*(?:Collecting \S+|Downloading \S+|Using cached \S+\.whl|Requirement already satisfied|Installing collected packages|Successfully (?:installed|built)|"
    r"Building wheel for|Preparing metadata|(?:Preparing to unpack|Unpacking|Setting up|Selecting previously unselected package|Processing triggers for) |Get:\d+ \S+|Hit:\d+ |\(Reading database)"
)
_MOSTLY = 0.6
"""Share of such lines in the log of an installation; a start script that installs something first goes on to print other things."""


def matches(head: Head) -> bool:
    """Two packages with their versions at least, and nothing besides but headings, comments and options of `pip`; or an installation."""
    lines = head.told
    if len(lines) >= 3 and sum(bool(_INSTALLING.match(line)) for line in lines) >= _MOSTLY * len(lines):
        return True
    packages = sum(bool(_PACKAGE.match(line)) for line in lines)
    return packages >= 2 and packages + sum(bool(_AROUND.match(line)) for line in lines) >= len(lines)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The engine's release, where the list pins one."""
    rows = Rows()
    for chunk in chunks:
        for number, text in chunk.lines(_LINE_CAP):
            found = _PACKAGE.match(text)
            if found and _RELEASE.match(text):
                rows.add("engine_flag", number, flag="version", value=found["version"], origin="file")
    yield from rows.take()
