"""Which of the figures that decide something a column of a table of tries holds, and in which unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.grammar import Column
from oomdoc.ingest.vocabulary.words import named, word_set
from oomdoc.regexes import regex


def with_unit(name: str, column: Column, cells: Sequence[Any]) -> Column:
    """The column with the unit of bytes that its cells name, where its own name has none (`16.44 GiB` below `loading took`).

    >>> with_unit("peak gpu", grammar.column_of("peak gpu"), ["512 MiB", "1_024 MiB"])[:3], with_unit("took", grammar.column_of("took"), ["9 s"]).unit
    (('memory', 'gpu', 'MiB'), '')
    """
    if column.unit or not all(isinstance(cell, str) and not cell.strip().isdigit() for cell in cells):
        return column
    units = {match[1].upper() + ("iB" if match[2] or match[1] else "B") for cell in cells if (match := _SIZED.fullmatch(str(cell).strip()))}  # fmt: skip
    whole = all(_SIZED.fullmatch(str(cell).strip()) for cell in cells)
    if not whole or len(units) != 1:
        return column
    named = grammar.column_of(f"{name} {(unit := units.pop())}")  # whose memory it is, now that it is one of bytes
    return named if column.role == grammar.FIGURE and named.role == grammar.MEMORY and named.resource else column._replace(unit=unit)  # fmt: skip


_SIZED = regex(r"-?\d[\d,_]{0,12}(?:\.\d{1,6})?\s?([KMGT])(i)?B?")
_SPARE = word_set("free available left livre libre frei freier libero wolne disponible disponivel")
_SHARED = word_set("card gpu rank device user request req stream client replica node")
_ASKED = named("asked")
_READING = word_set("prompt input in prefill prompts")


def figure_of(words: Sequence[str], column: Column) -> tuple[str, str]:
    """Which of the figures that decide something a column is, "" for another; and its unit."""
    among = set(words)
    if column.unit == "%":
        return "", ""  # a share of memory in use is none of them
    of_service = grammar.service(" ".join(words))
    if of_service[0] in ("ttft_s", "tpot_s"):
        return of_service  # seconds to a token, and no tokens a second
    if among & {"activation", "activations", "act"} and column.unit:
        return "activation_bytes", column.unit
    if among & {"graph", "graphs", "cudagraph", "cudagraphs"} and column.unit:
        return "graph_bytes", column.unit
    if ({"non", "torch"} <= among or {"outside", "torch"} <= among or among & {"nontorch", "nccl"}) and column.unit:
        return "non_torch_bytes", column.unit
    tokens = bool(among & {"token", "tokens", "tok", "toks"})
    rate = bool(among & {"rate", "ratio", "pct", "percent", "share"})
    per_second = bool(among & {"s", "sec", "second"}) and tokens
    if column.role == grammar.MEMORY:
        return {"host": "host_bytes", "container": "host_bytes", "host-used": "host_bytes", "gpu": "gpu_bytes"}.get(column.resource, ""), column.unit or "B"  # fmt: skip
    blocks = bool(among & {"block", "blocks"})
    if among & {"hit", "hits", "cached", "reused"}:
        # hits of what was looked up, in one column; a part of the prompts that is written in percent
        rate = rate or bool(among & {"queries", "lookups"})
        rate = rate or (not tokens and (column.unit != "" or among >= {"cached", "prompt"}))
        return "hit_rate" if rate else "hit_tokens", "%" if among & {"pct", "percent"} else ""
    if tokens and not per_second and among & _ASKED:
        return "asked_tokens", ""
    if blocks and among & {"query", "queries", "lookups", "looked"}:
        return "asked_tokens", ""  # in blocks, as what was found of them
    if per_second:  # of the whole server, and what it writes: reading prompts is another work
        return ("" if among & (_SHARED | _READING) else "tokens_s"), ""
    if among & {"kv", "pool"} and tokens:
        return "kv_tokens", ""
    if "kv" in among and column.unit:
        return "kv_bytes", column.unit
    if {"kv", "cache", "size"} <= among and not among & {"block", "blocks", "page", "dtype"}:
        return "kv_tokens", ""  # as the engine prints it: tokens
    if "cache" in among and among & _SPARE and column.unit and not among & {"page", "cpu", "host", "encoder", "disk"}:
        return "kv_bytes", column.unit
    if among & {"weights", "weight", "model", "pesos", "gewichte", "poids", "pesi", "wagi"} and column.unit:
        return "weights_bytes", column.unit
    if among & {"blocks"} and among & {"gpu", "kv"}:
        return "kv_blocks", ""
    if among & {"preemptions", "preempted", "preemption"}:
        return "preemptions", ""
    if of_service[0]:
        return of_service
    fate = grammar.fate(" ".join(words))
    return (fate, "") if fate else ("", column.unit)
