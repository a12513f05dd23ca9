"""Pairs in text: lines of `key: value`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oomdoc.ingest.forms import text as texts
from oomdoc.ingest.forms.believe import plan_for
from oomdoc.ingest.forms.groups import OfLines
from oomdoc.ingest.forms.trees import Record


class Pairs(OfLines):
    """Reads `key: value` lines: a record ends where a key comes again, at a blank line, or at a heading."""

    def read(self, lines: Sequence[str], first_line: int) -> set[int]:
        """Read a run of lines; the places of those whose names were understood."""
        blocks: list[tuple[dict[str, Any], dict[str, int]]] = []
        values: dict[str, Any] = {}
        places: dict[str, int] = {}
        about: dict[str, Any] = {}
        expanded = False

        def close() -> None:
            nonlocal values, places
            if len(values) > 1:
                blocks.append(({**about, **values}, places))
            values, places = {}, {}

        for at, line in enumerate(lines):
            named = texts.section(line) if line.strip() else None
            if not line.strip() or named is not None:
                close()
                expanded = line.startswith("-[ RECORD ")
                found = re.search(r"(gpu|device|card|process|pid)\D{0,3}(\d{1,7})", named or "", re.I)
                about = {found[1].lower(): found[2]} if found else about if named is None else {}
                continue
            pair = texts.record_line(line) if expanded else texts.pair_line(line)
            if pair is None:
                continue
            name, value = pair
            if name in values:
                close()
            if value is not None:
                for one, cell in _halves(name, value):
                    values[one], places[one] = cell, at
        close()
        taken: set[int] = set()
        together: dict[tuple[str, ...], list[tuple[dict[str, Any], dict[str, int]]]] = {}
        for block in blocks:
            together.setdefault(tuple(block[0]), []).append(block)
        for number, entries in enumerate(together.values()):
            plan = plan_for([values for values, _ in entries])
            if plan is None:
                continue
            known = {column.name for part in plan.parts for column in part.columns}
            for values, places in entries:
                first = first_line + min(places.values())
                self._gatherer.add(Record(first, f"#pairs{number}", {name: values[name] for name in values if name in known or name not in plan.unknown}))  # fmt: skip
                taken |= {place for name, place in places.items() if name in known}
        return taken


def _halves(name: str, value: str) -> list[tuple[str, str]]:
    """`min/max: 1 / 4` as two pairs; another pair as it is."""
    names, cells = name.split("/"), value.split("/")
    if 1 < len(names) == len(cells) and all(cell.strip() for cell in (*names, *cells)):
        return [(one.strip(), cell.strip()) for one, cell in zip(names, cells, strict=True)]
    return [(name, value)]
