"""Records as their writer meant them, before anybody asks what their columns are: written out, and with numbers as this program reads them.

A cell may quote a log's statement, name and all; it may say that it is as in the row before; a table may write its numbers with a
decimal comma. Nothing here knows what a column means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.ingest.forms.cells import Values, is_number, null
from oomdoc.ingest.setting_names import settings_in
from oomdoc.regexes import regex

# ---- cells that quote a line

_QUOTED = regex(
    r"[`\"']?(?P<name>[A-Za-z][\w /-]{3,40}?)(?:: | = |=)(?P<value>-?\d[\d,]{0,20}(?:\.\d{1,9})?)(?: ?(?P<unit>[A-Za-z]{1,8}))?[`\"'.]?"
)
"""`GPU KV cache size: 1,024 tokens`: a statement of a log in a cell, name and unit with the value."""
STATEMENT = regex(r"(?:^|[|,;\t`\"' ])(?:[\w-]+ ){1,6}[\w-]+: -?\d[\d,.]{0,20} (?:[KMGT]i?B|tokens)\b")


def may_quote(lines: Sequence[str]) -> bool:
    """Whether rows below the first line hold a log's statement in a cell, so that this header need not name a quantity."""
    return not any(letter.isdigit() for letter in lines[0]) and any(STATEMENT.search(line) for line in lines[1:])


def unquoted(values: Values) -> Values:
    """A record whose cells quote statements, each under the name that the statement has; any other record as it is."""
    found: dict[str, Any] = {}
    if any("=" in name or ":" in name for name in values):
        return values  # a line of pairs, and no table
    for name, cell in values.items():
        match = (
            _QUOTED.fullmatch(cell.strip())
            if isinstance(cell, str) and len(cell) < 100 and not is_number(cell)
            else None
        )
        if match is None or any(True for _ in settings_in(cell)):
            found[name] = cell
        else:
            found[f"{match['name']} {match['unit'] or ''}".strip()] = match["value"]
    return found


# ---- cells that point to another row

_AS_BEFORE = regex(
    r"(?i)(?:the )?(?:same|ditto|dito|idem|again|as (?:above|before)|unchanged|\"|″|〃)"
    r"(?: as(?: (?:run|row|try|no\.?|number))? ?#?(?P<number>\d{1,3}))?(?P<more>[,;+] ?.{1,80})?"
)
_NAMED_ROWS = 200


class Abridged:
    """Fills in cells that only say that they are as in the row before, or in one that is named by its number.

    >>> rows = Abridged()
    >>> [rows.whole(row)["kv"] for row in ({"run": "1", "kv": "fp8"}, {"run": "2", "kv": "same"}, {"run": "3", "kv": "auto"}, {"run": "4", "kv": "same as 2, TP 2"})]
    ['fp8', 'fp8', 'auto', 'fp8, TP 2']
    """

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}
        self._rows: dict[str, Values] = {}

    def whole(self, values: Values) -> Values:
        """The record with such cells filled in; a cell whose other row is not known stays as it is."""
        found = {name: self._cell(name, cell) if isinstance(cell, str) else cell for name, cell in values.items()}
        self._before.update((name, cell) for name, cell in found.items() if not null(cell))
        if found and len(self._rows) < _NAMED_ROWS:
            self._rows[str(next(iter(found.values()))).strip(" #.")] = found
        return found

    def _cell(self, name: str, cell: str) -> Any:
        match = _AS_BEFORE.fullmatch(cell.strip()) if len(cell) < 120 else None
        if match is None:
            return cell
        base = self._rows.get(match["number"], {}).get(name) if match["number"] else self._before.get(name)
        return cell if base is None else f"{base}{match['more'] or ''}"


# ---- numbers with a decimal comma

_COMMA = regex(r"-?(?:0|[1-9]\d{0,2}(?:\.\d{3})*),(?:\d{1,2}|\d{4,9})|-?0,\d{1,9}")
_POINT = regex(r"-?\d{1,12}\.(?:\d{1,2}|\d{4,9})|-?[1-9]\d{0,2}(?:,\d{3})+")
_WITH_COMMA = regex(r"(?P<number>-?\d{1,3}(?:\.\d{3})+(?:,\d{1,9})?|-?\d{1,12},\d{1,9})(?P<unit> ?[A-Za-z%]{0,8})")


def writes_commas(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the numbers of a table have a decimal comma: some can be nothing else, and none has a point for it."""
    cells = [cell.strip() for record in records for cell in record.values() if isinstance(cell, str)]
    return any(_COMMA.fullmatch(cell) for cell in cells) and not any(_POINT.fullmatch(cell) for cell in cells)


def with_points(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record of such a table with its numbers as the rest of this program reads them."""
    return {name: _pointed(cell) if isinstance(cell, str) else cell for name, cell in values.items()}


def _pointed(cell: str) -> str:
    match = _WITH_COMMA.fullmatch(cell.strip())
    return match["number"].replace(".", "").replace(",", ".") + match["unit"] if match else cell
