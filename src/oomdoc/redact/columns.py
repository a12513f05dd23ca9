"""Values by the column they stand in: CSV of any delimiter, listings of kubectl, ps and squeue."""

from __future__ import annotations

import re

from oomdoc.redact.fields import RAW_LINES
from oomdoc.redact.values import Values
from oomdoc.redact.words import kind_of

_HEADER = re.compile(
    r"^(?:#+ ?|\| ?)?\"?[A-Za-z_][\w .\[\]%/()-]{0,60}\"?(?:[,;\t|][ \t]?\"?[A-Za-z_][\w .\[\]%/()-]{0,60}\"?){1,80}[ \t]*\|?[ \t]*\r?$",
    re.M,
)
_LISTING = re.compile(
    r"^(?:NAMESPACE|NAME|USER|UID|NODE|LAST SEEN)(?: {1,80}[A-Z][A-Z()%,/-]*(?:\([a-z]{1,10}\))?(?: [A-Z()-]+)?)+[ \t]*\r?$|"
    r"^USER +PID .*$|^ *(?:PID|JOBID) +[A-Z].*$",
    re.M,
)
_HEADS = {
    "USER": "user",
    "UID": "user",
    "NODE": "host",
    "NAMESPACE": "tenant",
    "ACCOUNT": "tenant",
    "NODELIST(REASON)": "host",
    "NODELIST": "host",
}


def columns(values: Values, text: str) -> str:
    """Columns whose head names a field: CSV of any delimiter, listings of kubectl and ps."""
    if _HEADER.search(text):
        text = _csv(values, text)
    return _listings(values, text) if _LISTING.search(text) else text


def _csv(values: Values, text: str) -> str:
    out: list[str] = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        line = lines[place]
        out.append(line)
        place += 1
        head = _head(line)
        if head is None:
            continue
        delimiter, kinds, width = head
        while place < len(lines):
            taken = 1
            row = lines[place]
            while row.count('"') % 2 and taken < RAW_LINES and place + taken < len(lines):
                row += "\n" + lines[place + taken]
                taken += 1
            cells = _cells(row, delimiter)
            if len(cells) != width:
                break
            for column, kind in kinds:
                cells[column] = _cell(values, cells[column], kind)
            out += delimiter.join(cells).split("\n")
            place += taken
    return "\n".join(out)


def _cell(values: Values, cell: str, kind: str) -> str:
    bare = cell.strip()
    quoted = len(bare) > 1 and bare[0] == bare[-1] == '"'
    inner = bare[1:-1] if quoted else bare
    return (
        cell.replace(bare, f'"{values.inside(inner, kind)}"' if quoted else values.inside(inner, kind))
        if inner
        else cell
    )


def _listings(values: Values, text: str) -> str:
    lines = text.split("\n")
    columns: list[tuple[int, str]] = []
    spaced, width = "", 0
    for place, line in enumerate(lines):
        if _LISTING.fullmatch(line):
            spaced = r" +" if line.lstrip().startswith(("USER", "UID", "PID", "JOBID")) else r" {2,}"
            heads = re.split(spaced, line.strip())
            width = len(heads)
            columns = [
                (at, kind)
                for at, head in enumerate(heads)
                if (kind := _HEADS.get(head))
                or (kind := "host" if head == "NAME" and {"ROLES", "CPU%"} & set(heads) else None)
            ]
        elif columns:
            cells = list(re.finditer(r"\S+(?: \S+)*" if spaced == r" {2,}" else r"\S+", line))
            processes = spaced == r" +"
            if len(cells) < min(width, 2) or (processes and not (cells[1][0].isdigit() or cells[0][0][:1].isdigit())):
                columns = []
                continue
            for at, kind in reversed(columns):
                if at < len(cells) and (len(cells) == width or at < 4 or not processes):
                    cell = cells[at]
                    line = line[: cell.start()] + values.name(kind, cell[0]) + line[cell.end() :]
            lines[place] = line
    return "\n".join(lines)


def _head(line: str) -> tuple[str, list[tuple[int, str]], int] | None:
    """Delimiter, columns that tell of somebody and how many there are, if a line is the head of a table."""
    if len(line) > 8000 or not _HEADER.fullmatch(line):
        return None
    delimiter = max(",;\t|", key=line.count)
    heads = [cell.strip().strip('"# ') for cell in line.strip("\r").split(delimiter)]
    kinds = []
    for place, head in enumerate(heads):
        kind = kind_of(head)
        if kind == "weak":
            kind = "prompt"
        if kind:
            kinds.append((place, kind))
    return (delimiter, kinds, len(heads)) if kinds and len(heads) > 1 else None


def _cells(row: str, delimiter: str) -> list[str]:
    if '"' not in row:
        return row.split(delimiter)
    pattern = re.compile(rf'(?:^|{re.escape(delimiter)})(\s*"(?:[^"]|"")*+"\s*|[^{re.escape(delimiter)}]*)')
    return [match[1] for match in pattern.finditer(row)]
