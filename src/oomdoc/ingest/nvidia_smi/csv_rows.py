"""CSV queries, with or without a header: row by row, and a chunk at a time where all rows have one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.nvidia_smi import cells as reads
from oomdoc.ingest.nvidia_smi import sheet as sheets
from oomdoc.ingest.nvidia_smi.boxes import FAILED
from oomdoc.ingest.nvidia_smi.findings import Findings
from oomdoc.intake.cells import Field
from oomdoc.intake.columns import Cut, Template
from oomdoc.units import MIB

_CLOCKED_BYTES = 4 << 20
_CELLS = 64  # more is no row of a query
AHEAD = 64  # rows that are looked at to tell columns without header
_DIGITS = "0123456789"
_OWN_LINES = "|+=#<{>["  # what lines that mean more than a row begin with
_BLOCKS = Template(b"\n", 1, (Field("stamp", "t", 0, 0, b"=== ", b" ==="),))


class CsvRows:
    """The queries of one source. `lines` and `at` are the lines around the one at hand, and its place in them."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self.lines: Sequence[bytes] = ()
        self.at = 0
        self._sheet: sheets.Sheet | None = None
        self._bare: dict[int, sheets.Sheet | None] = {}  # columns without header, by their number
        self._doubts: set[str] = set()  # of each a problem was made
        self._unclear: set[tuple[str, ...]] = set()  # kinds of cells of which no columns could be made
        self._shape: tuple[sheets.Sheet, Template] | None = None  # what fitted the last chunk

    @property
    def knows_columns(self) -> bool:
        """Whether columns were found already."""
        return bool(self._sheet or self._bare)

    def has_clocks(self, size: int) -> bool:
        """Whether the columns have a clock, which the fast reader passes over, and the chunk is worth the slow one."""
        roles = self._sheet.roles if self._sheet is not None else ()
        return size <= _CLOCKED_BYTES and ("clock" in roles or ("free" in roles and "used_bytes" not in roles))

    def add(self, line: int, text: str) -> bool:
        """A line of cells; whether it is a header."""
        sheet = None if text[0] in _DIGITS else sheets.header(text) or sheets.asked(text)
        if sheet:
            if self._sheet is None or self._sheet.names != sheet.names:
                for name in sheet.unknown:
                    self._found.rows.problem(
                        line, f"a column of unknown meaning in a table of nvidia-smi: {name[:60]}", text
                    )
            self._sheet = sheet
            return True
        cells = [cell.strip() for cell in text.split(",")]
        sheet = self._sheet
        if sheet is None or len(sheet.roles) != len(cells):
            sheet = self._bare_sheet(line, cells, text)
            if sheet is None:
                return False
        values: dict[str, Any] = {}
        for at, role, value_of in sheet.used:
            try:
                values[role] = value_of(cells[at])
            except reads.UnreadableError:
                values[role] = None
                self._found.rows.problem(line, f"no value of {sheets.shown(role)}: {cells[at][:60]}", text)
        self._row(line, sheet, values)
        return False

    def _row(self, line: int, sheet: sheets.Sheet, values: Mapping[str, Any]) -> None:
        get = values.get
        gpu, identity = get("gpu"), get("uuid") or get("bus")
        if identity and gpu is not None:
            self._found.indices[identity] = gpu
        elif identity and (not sheet.of_processes or identity in self._found.indices):
            gpu = self._found.index(identity)
        t = values["t"] if get("t") is not None else self._found.t
        if sheet.of_processes:
            self._found.process(line, t, gpu, get("pid"), "C", get("process"), get("process_bytes"), identity)
            return
        if get("name"):
            self._found.device(line, gpu, values["name"], get("total_bytes"), bus_id=get("bus"), uuid=get("uuid"))
        if sheet.measures:
            used, total, free = get("used_bytes"), get("total_bytes"), get("free")
            if used is None and total is not None and free is not None and free <= total:
                used = max(0, total - free - (get("reserved") or 0))
            row = (line, t, gpu, used, total, get("gpu_util"), get("memory_util"))
            self._found.samples.append(row)
            self._found.clock(line, t, gpu, get("clock"), get("hot"), get("gpu_util"))

    def _bare_sheet(self, line: int, cells: Sequence[str], text: str) -> sheets.Sheet | None:
        """The columns of a row without header."""
        count = len(cells)
        known = self._bare.get(count)
        kinds = tuple(map(sheets.kind_of, cells))
        if known and known.allows(kinds):
            return known
        expected = self._sheet or next((sheet for sheet in self._bare.values() if sheet), None)
        if count > _CELLS:
            return None
        rows = [cells] if kinds not in self._unclear else []
        for raw in self.lines[self.at + 1 : self.at + AHEAD] if rows else ():
            other = [cell.strip() for cell in reads.decode(raw).split(",")]
            if len(other) == count and all(
                a == b or "" in (a, b) for a, b in zip(kinds, map(sheets.kind_of, other), strict=True)
            ):
                rows.append(other)
        sheet, doubt = sheets.infer(rows) if rows else (None, "")
        if doubt and doubt not in self._doubts and not (sheet is None and expected):
            self._doubts.add(doubt)
            self._found.rows.problem(line, doubt, text)
        if sheet is None:
            if len(self._unclear) < 1000:
                self._unclear.add(kinds)
            if expected:
                self._found.rows.problem(line, f"not {len(expected.roles)} cells as in the rows before", text)
            return None
        self._bare[count] = sheet
        return sheet

    def fast(self, data: bytes, first_line: int) -> list[Batch] | None:
        """Samples of a chunk of rows of one query, with blocks, repeated headers and broken rows between them.

        None where the chunk holds anything else: a line that would change what the following ones mean.
        """
        found = self._template(data)
        cut = found[1].read(data, share=0.45) if found else None  # a loop over one device: as many headers as rows
        self._shape = found if cut else None
        if found is None or cut is None or any(sheets.beyond(name, column) for name, column in cut.columns.items()):
            return None
        blocks = _BLOCKS.fill(data, cut.odd[0], cut.odd[1], cut.odd[2][None, :], tuple(side[:0] for side in cut.odd))
        broken = []
        for at, begin, end in blocks.odd_lines():
            text = reads.decode(data[begin:end])
            if text.strip() and text.strip() != found[0].header:
                if not self._only_broken(text, found[0]):
                    return None
                broken.append((at, text))
        batches = self._fast_batches(cut, blocks, first_line)
        for at, text in broken:
            earlier = blocks.columns["t"][blocks.lines < at]
            t, self._found.t = self._found.t, float(earlier[-1]) if len(earlier) else self._found.t
            self.at, self.lines = 0, ()
            self.add(first_line + at, text)
            self._found.t = t
        if len(blocks.lines):
            self._found.t = float(blocks.columns["t"][-1])
        return batches

    def _only_broken(self, text: str, sheet: sheets.Sheet) -> bool:
        """Whether a line is a row that went wrong and says nothing of the rows after it."""
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) < 2 or text[0] in _OWN_LINES or sheets.header(text) or FAILED.search(text):
            return False
        return (sheet.header != "" and len(cells) == len(sheet.roles)) or "memory" not in map(sheets.kind_of, cells)

    def _fast_batches(self, cut: Cut, blocks: Cut, first_line: int) -> list[Batch]:
        """The samples of a cut; every row has the time of its block, the first rows that of the last chunk's."""
        import numpy as np

        columns, lines = cut.columns, cut.lines
        if not len(lines):
            return []
        out = {"line": lines + first_line, "t": columns.get("t")}
        if out["t"] is None:
            before = np.searchsorted(lines, blocks.lines)
            times = np.concatenate(([0.0 if self._found.t is None else self._found.t], blocks.columns["t"]))
            out["t"] = np.repeat(times, np.diff(before, prepend=0, append=len(lines)))
            early = before[0] if len(before) else len(lines)
            if self._found.t is None and early:
                out["t"] = np.ma.masked_array(out["t"], mask=np.arange(len(lines)) < early)
        if "identity" in columns:
            identities = columns["identity"].tolist()
            known = {each: None if each is None else self._found.index(each) for each in dict.fromkeys(identities)}
            out["gpu"] = [known[each] for each in identities]
        for name, column in columns.items():
            if name == "gpu":
                out[name] = column
            elif name.endswith("_bytes"):
                out[name] = column.astype(np.int64) * MIB
            elif name.endswith("_util"):
                out[name] = column / 100
        return [Batch("gpu_sample", out)]

    def _template(self, data: bytes) -> tuple[sheets.Sheet, Template] | None:
        """The shape of the chunk's rows, as its first rows show it under columns that are known."""
        lines = [line for line in data[:4096].split(b"\n")[:-1] if b"," in line]
        if not lines:
            return None
        width = lines[0].count(b",") + 1
        sheet = self._sheet if self._sheet and len(self._sheet.roles) == width else self._bare.get(width)
        if sheet is None or not sheet.measures:
            return None
        if self._shape and self._shape[0] is sheet:
            return self._shape
        rows = [line.split(b",") for line in lines if line.count(b",") == width - 1][:16]
        fields = []
        for at, role in enumerate(sheet.roles):
            cells = [row[at] for row in rows]
            identity = role in ("uuid", "bus") and "gpu" not in sheet.roles
            if role in sheets.FAST or identity:
                ending = b"\r" if at == width - 1 and cells[0].endswith(b"\r") else b""
                made = sheets.fast_field("identity" if identity else role, at, cells, ending, not sheet.header)
                if made is None:
                    return None
                fields.append(made)
        if sum(made.name == "identity" for made in fields) > 1:
            return None
        return sheet, Template(b",", width, tuple(fields), ((b"\x1b", 0),))
