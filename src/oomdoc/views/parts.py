"""Views without those parts of which it is known what they give.

A view of ten kilobytes names a dozen queries in its WITH clause, most of them over tables that have no row in this bundle. Such a
part gives what it gives where there is no evidence, which `docs/generate.py` writes down in `parts.json`: it is put in its place,
and what nobody reads any more is left out. To plan what is left costs a third less in a bundle of one log.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from oomdoc.views import VIEWS
from oomdoc.views.blank import Claim, mark, written_down

_WORD = re.compile(r"\w+")


class Part(NamedTuple):
    """A query of a WITH clause: its name, where that stands, where its text begins and ends, when it gives what it gives of no
    evidence, and what gives the same then (None: no less is to be planned)."""

    name: str
    at: int
    begin: int
    end: int
    bare: Claim
    text: str | None


@functools.cache
def _parts() -> Mapping[str, Sequence[Part]]:
    return {
        name: [Part(*part) for part in entry["parts"]]
        for name, entry in written_down("parts.json").items()
        if name in VIEWS and entry["mark"] == mark(VIEWS[name].sql)
    }


def parts_of(name: str) -> Sequence[Part]:
    """The parts of a view's WITH clause; none where it has none, or was changed since they were written down."""
    return _parts().get(name, ())


def shortened(name: str, so: Callable[[Claim], bool]) -> str:
    """The text of a view without those parts whose claim is `so`."""
    sql, parts = VIEWS[name].sql, parts_of(name)
    known = {part.name: part.text for part in parts if part.text is not None and so(part.bare)}
    if not known:
        return sql
    rest = sql[parts[-1].end + 1 :]
    named, kept = set(_WORD.findall(rest)), []
    for part in reversed(parts):  # a part reads those before it
        if part.name in named:
            text = known.get(part.name) or sql[part.begin : part.end]
            named.update(_WORD.findall(text))
            kept.append(f"{sql[part.at : part.begin]}{text})")
    return f"{sql[: parts[0].at]}{', '.join(reversed(kept))}{rest}" if kept else rest
