"""What several sources say together: each view is one SQL file, made once per bundle or once per incident.

A file begins with comment lines: `-- says:` a sentence, `-- scope:` bundle or incident, then one line per column
(`-- name: meaning`). The file's number orders the making; views may use tables, `seen.<table>` (log rows of the incident in
focus) and views before them. Rules ask views, so a predicate that two rules want is a named column here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from oomdoc.views.thresholds import SHARED, filled


@dataclass(frozen=True)
class View:
    """A view: its name, what a row is, its scope (`bundle` or `incident`), what each column means, its SELECT."""

    name: str
    says: str
    scope: str
    columns: Mapping[str, str]
    sql: str


_HEADER = re.compile(r"-- (\w+): (.*)")


def read_view(path: Path) -> View:
    """Read one view file; raises ValueError where the header lacks `says` or `scope`,
    KeyError for a threshold that `thresholds.toml` does not declare."""
    says, scope = "", ""
    columns: dict[str, str] = {}
    body: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _HEADER.fullmatch(line) if not body else None
        if match is None:
            if line.strip() or body:
                body.append(line)
        elif match[1] == "says":
            says = match[2]
        elif match[1] == "scope":
            scope = match[2]
        else:
            columns[match[1]] = match[2]
    if not says or scope not in ("bundle", "incident"):
        raise ValueError(f"{path.name}: the header needs `-- says:` and `-- scope: bundle|incident`")
    return View(path.stem.split("_", 1)[1], says, scope, MappingProxyType(columns), filled("\n".join(body), SHARED))


VIEWS: Mapping[str, View] = MappingProxyType(
    {view.name: view for view in (read_view(path) for path in sorted(Path(__file__).parent.glob("*.sql")))}
)
"""All views by name, in the order in which they are made."""
