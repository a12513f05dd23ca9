"""What a search over many bundles found, for a terminal: a heading a bundle, its places below it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from oomdoc.report.words import count, neutral

SHOWN = 5
"""Places of a bundle that are listed; other forms have all."""


def render(rows: Sequence[tuple[str, str | None, str | None, str, str]], width: int) -> str:
    """Rows of bundle, cause, place, table and text, in order of bundle."""
    from rich.cells import cell_len, set_cell_size

    lines = []
    for (bundle, cause), group in itertools.groupby(rows, key=lambda row: row[:2]):
        places = list(group)
        lines.append(f"{neutral(bundle)}  {cause or 'no cause'}, {count(len(places), 'place')}")
        for _, _, ref, _, text in places[:SHOWN]:
            line = f"  {neutral(ref or '')}  {neutral(text)}"
            lines.append(line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…")
        if len(places) > SHOWN:
            lines.append(f"  and {len(places) - SHOWN} more; --format jsonl has all")
    return "\n".join(lines or ["no bundle shows it"]) + "\n"
