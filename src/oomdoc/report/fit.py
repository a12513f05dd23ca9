"""The capacity worksheet for a person, and as JSON: what starts, what the pool holds, what a change does, what to paste.

An interval is printed as `from to`, rounded so that no digit claims more than its width; the origin of every input
stands at the end. What `fit` computed is chosen and worded here, nothing is computed.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from oomdoc.model.worksheet import Alternative, Cell, Input, Matrix, Solved, Worksheet
from oomdoc.physics.interval import Interval
from oomdoc.report.json import dump
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import flag, neutral
from oomdoc.units import GIB, show_bytes

_STYLES = {True: "green", False: "red", None: "yellow"}
_WORDS = {True: "yes", False: "no", None: "open"}
_CHECKS = {
    "division": "refused at once",
    "positions": "refused at once",
    "weights": "refused while loading",
    "free-memory": "refused before loading",
    "no-blocks": "refused after profiling",
    "length": "refused by the length check",
}


def render(sheet: Worksheet, *, width: int = 100, color: bool = False, **_: Any) -> str:
    """The worksheet as text."""
    page = Page(width, color)
    _verdict(page, sheet)
    _memory(page, sheet)
    _pool(page, sheet)
    _utilization(page, sheet)
    _alternatives(page, sheet.alternatives)
    _templates(page, sheet)
    _command(page, sheet)
    _inputs(page, sheet.inputs)
    if sheet.doubts:
        page.heading("Doubts")
        for doubt in sheet.doubts:
            page.flow(ink("-"), page.prose(doubt), indent=2, gap=1)
    return page.text()


def render_json(answer: Worksheet | Solved | Matrix) -> str:
    """The worksheet, or one solved flag, as one JSON object."""
    return dump(answer.to_dict())


def render_solved(solved: Solved) -> str:
    """The value alone, for scripts; `none` where none fits for sure."""
    if solved.value is None:
        return "none\n"
    return f"{solved.value:g}\n" if solved.value < 1 else f"{solved.value:.0f}\n"


def _verdict(page: Page, sheet: Worksheet) -> None:
    style = _STYLES[sheet.start.starts]
    device = neutral(sheet.device) or f"a device of {show_bytes(sheet.total_bytes.lo)}"
    where = f"{sheet.ranks} × {device.removeprefix('a ')}" if sheet.ranks > 1 else device
    page.flow(ink(sheet.answer, f"bold {style}"), ink(f"{neutral(sheet.model)} on {where}{_gist(sheet)}", "bold"))
    why = f"{_CHECKS[sheet.start.check]}: " if sheet.start.starts is False and sheet.start.check else ""
    page.flow(Text(), ink(f"{why}{sheet.start.says}"), indent=2)


def _gist(sheet: Worksheet) -> str:
    """What the first line says besides yes or no: the pool, and how many of the longest requests it holds."""
    pool = sheet.pool
    if pool is None or sheet.start.starts is False:
        return ""
    length = next((entry.value for entry in sheet.inputs if entry.name == "max_model_len"), None)
    asked = f" of {length:,} tokens" if isinstance(length, int) else " of max_model_len"
    return f": {whole(pool.tokens)} tokens of KV, {_ratio(pool.concurrency)} requests{asked}"


def render_matrix(table: Matrix, *, width: int = 100, color: bool = False, **_: Any) -> str:
    """The matrix as text: a line per device and format, a column per number of ranks."""
    page = Page(width, color)
    page.flow(
        ink(neutral(table.model), "bold"),
        ink(f"max_model_len {table.max_model_len:,}; pool tokens for sure where it starts"),
    )
    ranks = list(dict.fromkeys(cell.tensor_parallel_size for cell in table.cells))
    page.line(ink(f"  {'device':<26}{'weights':<14}" + "".join(f"{f'TP {count}':>15}" for count in ranks), "dim"))
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in table.cells:
        rows.setdefault((cell.gpu, cell.quantization), []).append(cell)
    for (gpu, method), cells in rows.items():
        line = ink(f"  {neutral(gpu)[:25]:<26}{method:<14}")
        for cell in cells:
            shown = f"{cell.tokens:,}" if cell.starts and cell.tokens is not None else _WORDS[cell.starts]
            line = line + ink(f"{shown:>15}", _STYLES[cell.starts])
        page.line(line)
    page.flow(Text(), ink("open: the intervals do not decide; no: the engine refuses to start", "dim"), indent=2)
    return page.text()


def _memory(page: Page, sheet: Worksheet) -> None:
    page.heading("Memory of one GPU", "GiB = 2^30 bytes; the fullest rank")
    for part in sheet.parts:
        line = ink(f"  {part.name:<25}") + ink(f"{gib(part.size_bytes):>18}")
        page.line(line + ink(f"  {part.size_bytes.origin}", "dim"))
    page.line(ink(f"  {'device total':<25}{gib(sheet.total_bytes):>18}") + ink(f"  {sheet.total_bytes.origin}", "dim"))


def _pool(page: Page, sheet: Worksheet) -> None:
    page.heading("KV cache")
    if sheet.kv_bytes_per_token is not None:
        said = f"{show_bytes(sheet.kv_bytes_per_token)} per GPU ({sheet.kv_bytes_per_token:,.0f} bytes)"
        _row(page, "one token", said)
    if sheet.state_bytes_per_request:
        _row(page, "one request", f"{show_bytes(sheet.state_bytes_per_request)} of recurrent state besides, per GPU")
    pool = sheet.pool
    if pool is not None:
        _row(page, "pool", f"{whole(pool.tokens)} tokens, as the engine prints them")
        groups = f", in {pool.groups} groups of layers" if pool.groups > 1 else ""
        blocks = f"{whole(pool.blocks)} of {pool.block_tokens:,} tokens, {show_bytes(pool.block_bytes)} each{groups}"
        _row(page, "blocks", blocks)
        _row(page, "concurrency", f"{_ratio(pool.concurrency)} requests of max_model_len ({pool.need_blocks:,} blocks)")
    elif sheet.kv_bytes_per_token is None:
        page.flow(
            Text(), ink("no formula is known for this model's cache: the log shows its blocks and pages"), indent=2
        )
    if sheet.longest is not None:
        limit = sheet.longest.model_limit
        said = f"memory allows {whole(sheet.longest.tokens)} tokens"
        if limit:
            said += f"; the model itself states {limit:,}"
        _row(page, "max_model_len", said)
    for size in sheet.at_once:
        made = f" + {size.output_tokens:,} out" if size.output_tokens else ""
        what = f"{size.input_tokens:,} in{made}" if size.output_tokens else f"{size.tokens:,} tokens"
        _row(page, f"at once, {neutral(size.name)}", f"{whole(size.requests)} requests of {what}")


def _row(page: Page, name: str, said: str) -> None:
    page.flow(ink(f"{name:<16}", "dim"), ink(said), indent=2, gap=1, lead_width=17)


def _utilization(page: Page, sheet: Worksheet) -> None:
    use = sheet.utilization
    if use is None:
        return
    page.heading("gpu_memory_utilization")
    _row(page, "now", f"{use.now:g}")
    gives = f"; the pool would hold {whole(use.tokens)} tokens" if use.tokens is not None else ""
    refused = "" if use.starts is True else " (does not start)" if use.starts is False else " (may not start)"
    _row(page, "safest", f"{use.safest:g}{refused}: {use.why}{gives}")
    if use.needed is not None:
        low, high = use.needed.lo, use.needed.hi
        said = f"{low:.3f} to {high:.3f}" if high - low >= 0.0005 else f"{high:.3f}"
        _row(page, "needed", f"{said} for one request of max_model_len" + (", which cannot be had" if low > 1 else ""))


def _alternatives(page: Page, rows: Sequence[Alternative]) -> None:
    page.heading("What a change does", "one at a time; weights in GiB and KV per token are per GPU")
    page.line(ink(f"  {'':<15}{'starts':<7}{'weights':>8}{'KV/token':>11}{'pool tokens':>13}{'longest':>11}", "dim"))
    for row in rows:
        weights = f"{row.weights_bytes.middle / GIB:.1f}" if row.weights_bytes else "-"
        token = show_bytes(row.kv_bytes_per_token) if row.kv_bytes_per_token else "-"
        tokens = f"{row.tokens.lo:,.0f}" if row.tokens is not None else "-"
        longest = f"{row.longest_tokens:,}" if row.longest_tokens is not None else "-"
        line = f"  {neutral(row.name):<15}{_WORDS[row.starts]:<7}{weights:>8}{token:>11}{tokens:>13}{longest:>11}"
        page.line(ink(line, "bold" if row.kind == "present" else ""))
        if row.says:
            page.flow(Text(), ink(row.says, "dim"), indent=17)
    page.flow(Text(), ink("pool tokens and longest request: what is there for sure", "dim"), indent=2)


def _templates(page: Page, sheet: Worksheet) -> None:
    if not sheet.templates:
        return
    page.heading("Safe parameters", "a pool of servers for each kind of traffic")
    for template in sheet.templates:
        page.flow(ink(f"{template.name:<6}", "bold"), ink(template.says), indent=2, gap=1)
        if template.starts is not False:
            page.items([ink(flag(name, value)) for name, value in template.flags.items()], indent=9)


def _command(page: Page, sheet: Worksheet) -> None:
    page.heading("Start it with")
    command = sheet.command
    if command is None:
        tried = "no change that was tried here makes it start on this device: see the table above"
        said = (
            tried if sheet.start.starts is False or sheet.pool else "what it needs is not known, so no command is given"
        )
        page.flow(Text(), ink(said), indent=2)
        return
    lines = [f"vllm serve {shlex.quote(neutral(command.model))}", *(flag(*item) for item in command.flags.items())]
    for place, line in enumerate(lines):
        more = " \\" if place < len(lines) - 1 else ""
        page.line(ink(f"  {'  ' if place else ''}{line}{more}"))
    for name, reason in command.changed.items():
        page.flow(ink(f"{name}:", "dim"), ink(reason, "dim"), indent=2, gap=1)
    if command.starts is None:
        page.flow(Text(), ink("it may start: the unknown parts decide", "yellow"), indent=2)


def _inputs(page: Page, inputs: Sequence[Input]) -> None:
    page.heading("Inputs and where each is from")
    for entry in inputs:
        value = gib(entry.value) + " GiB" if isinstance(entry.value, Interval) else neutral(_plain(entry.value))
        note = f" ({neutral(entry.note)})" if entry.note else ""
        page.flow(ink(f"{entry.name:<28}", "dim"), ink(f"{value}, {entry.origin}{note}"), indent=2, gap=1)


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def gib(size: Interval) -> str:
    """GiB with two digits; one figure where both ends look alike.

    >>> gib(Interval(1.5 * GIB, 2 * GIB)), gib(Interval(GIB, GIB))
    ('1.50 to 2.00', '1.00')
    """
    low, high = f"{size.lo / GIB:.2f}", f"{size.hi / GIB:.2f}"
    return low if low == high else f"{low} to {high}"


def whole(figure: Interval) -> str:
    """Whole numbers, the interval never narrower than it is.

    >>> whole(Interval(426640, 492816)), whole(Interval(7, 7))
    ('426,640 to 492,816', '7')
    """
    low, high = math.floor(figure.lo), math.floor(figure.hi)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _ratio(figure: Interval) -> str:
    low, high = f"{figure.lo:.2f}", f"{figure.hi:.2f}"
    return low if low == high else f"{low} to {high}"
