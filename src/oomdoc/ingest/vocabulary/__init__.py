"""The vocabulary: every quantity that a table of evidence holds, what people and tools call it, and what it can be.

A quantity is data, an entry in the TOML file of its theme: the table and column it fills, its names, its unit where neither name
nor cell tells one, the range that it can have, samples that prove it and near misses. One vocabulary serves headers of tables, keys of JSON and
YAML, `key: value` and the rows of a table in long form: the readers of `ingest.forms` know forms and no names, this package
knows names and no forms. `quantities()` lists them all.

Names are compared as words (`words`), so `mem_used_mib`, `Memory Used [MiB]` and `memoryUsed` are one name. A `strong` name is
said of nothing else; a `weak` one (`used`, `in`, `name`) counts only beside others of its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from oomdoc.ingest.vocabulary.folded import Folded, booked, unfolded
from oomdoc.ingest.vocabulary.quantity import KINDS, Quantity, exporters, listed, quantity_of, read
from oomdoc.ingest.vocabulary.words import BYTES, SECONDS, SHARES, named, taken_apart
from oomdoc.regexes import regex

__all__ = ["KINDS", "Match", "Quantity", "apart", "exporters", "foreign_program", "is_irrelevant", "meanings", "quantities", "quantity_of"]  # fmt: skip


@dataclass(frozen=True)
class Match:
    """A quantity that a name can mean; `unit` is the name's own ("" = none), `device` the number in front of it.

    Where a statistic or a window was taken off, `told` says which, and `bare` is what is left of the name.
    """

    quantity: Quantity
    strong: bool
    unit: str = ""
    device: int | None = None
    bare: str = ""
    told: str = ""


def _names(text: str) -> Iterable[str]:
    return (name for part in text.split(",") if (name := " ".join(part.split())))


def _fold(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


@cache
def quantities() -> tuple[Quantity, ...]:
    """Every quantity, in the order of the themes."""
    return tuple(listed())


@cache
def _by_words() -> Mapping[tuple[str, ...], tuple[tuple[Quantity, bool, str], ...]]:
    found: dict[tuple[str, ...], list[tuple[Quantity, bool, str]]] = {}
    for quantity in quantities():
        for names, strong in ((quantity.strong, True), (quantity.weak, False)):
            for name in _names(names):
                words, unit, _ = taken_apart(name)
                found.setdefault(words, []).append((quantity, strong, unit))
    return {words: tuple(entries) for words, entries in found.items()}


@cache
def _by_fold() -> Mapping[str, tuple[tuple[Quantity, bool, str], ...]]:
    found: dict[str, list[tuple[Quantity, bool, str]]] = {}
    for quantity in quantities():
        for name in _names(quantity.exact):
            plain, _, unit = name.partition("=")
            found.setdefault(_fold(plain), []).append((quantity, True, unit))
    return {name: tuple(entries) for name, entries in found.items()}


@lru_cache(maxsize=8192)
def meanings(name: str) -> tuple[Match, ...]:
    """The quantities that a name can mean: its whole self first, then without a statistic or a window (`folded`).

    >>> [match.quantity.id for match in meanings("fb_used [MiB]")], meanings("power.draw")
    (['gpu.used', 'process.gpu_used'], ())
    """
    plain = name.strip().strip("\"'`")
    rests = list(unfolded(_LEVEL.sub("", plain)))
    if rests and rests[0].apart and (found := _folded(rests)):
        return found
    # of the engine's series only those that are listed: another may be a time
    rests = [one for one in rests if not _SERIES.fullmatch(one.bare) or _fold(one.bare) in _by_fold()]
    if series := _SERIES.fullmatch(plain):
        known = _by_fold().get(_fold("vllm" + series[1]))
        return (() if known else _folded(rests)) or (Match(known[0][0] if known else _metric_of(series[1]), True),)
    return (
        _of_words(name)
        or _below(name)
        or _of_exported(plain)
        or _folded(rests)
        or _of_one(plain)
        or _selected(plain)
        or _qualified(plain)
    )


_QUALIFIED = regex(
    r"(?:turn|req|call|user|chat|agent|msg|message|client|llm|api|query|gw|gateway)[ _.-](?P<name>[A-Za-z]\w+[ _.-]\w+)"
)


def _qualified(plain: str) -> tuple[Match, ...]:
    """What a name means without the word before it that says only of which request it is: `turn_prompt_tokens`.

    >>> [match.quantity.id for match in meanings("turn_prompt_tokens")], meanings("turn_count")
    (['request.input'], ())
    """
    found = _QUALIFIED.fullmatch(plain)
    return (
        tuple(match for match in meanings(found["name"]) if match.strong and match.quantity.id.startswith("request."))
        if found
        else ()
    )


_SELECTED = regex(r"(?P<name>[A-Za-z_][\w:]{3,100})\{(?P<labels>[^{}]*)\}")
_NUMBERED = regex(r"\b(?:gpu|device|index|gpu_id|minor_number)=\W{0,3}(?:nvidia)?(\d{1,3})\W")


def _selected(plain: str) -> tuple[Match, ...]:
    """What a series of a device means whose labels stand in its header, as a panel is exported.

    >>> [(match.quantity.id, match.device) for match in meanings('DCGM_FI_DEV_FB_USED{gpu="3",pod="llm-0"}')]
    [('gpu.used', 3)]
    >>> meanings('DCGM_FI_DEV_FB_USED{gpu="3",GPU_I_ID="7"}')  # an instance is a device of its own
    ()
    """
    found = _SELECTED.fullmatch(plain)
    if found is None or "GPU_I_" in found["labels"]:
        return ()
    number = _NUMBERED.search(found["labels"] + " ")
    return tuple(
        replace(match, device=int(number[1]) if number else match.device)
        for match in meanings(found["name"])
        if match.strong and match.quantity.id.startswith("gpu.")
    )


_ONE = regex(r"(?P<name>[A-Za-z][A-Za-z0-9]*_\w+) +(?P<whose>[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)+)")


def _of_one(plain: str) -> tuple[Match, ...]:
    """What a legend of a panel means: the name of a series, and behind it the instance whose it is.

    >>> [match.quantity.id for match in meanings("kv_usage_pct llm-0")], meanings("kv_usage pressure")
    (['stat.kv_used'], ())
    """
    found = _ONE.fullmatch(plain)
    return tuple(match for match in meanings(found["name"]) if match.strong) if found else ()


_LEVEL = regex(r"^[a-z_]+:(?=vllm[:_])")
"""What a recording rule of Prometheus puts before the name: `instance:vllm_num_requests_waiting:max5m`."""


def _folded(rests: Iterable[Folded]) -> tuple[Match, ...]:
    """What the first of these rests means whose statistic is booked."""
    for one in rests:
        found = [(match, booked(match.quantity, one)) for match in meanings(one.bare)]
        if any(name for _, name in found):
            return tuple(replace(match, quantity=_averaged(match.quantity, name), bare=one.bare, told=f"{match.told} {one.told}".strip()) for match, name in found if name)  # fmt: skip
    return ()


@cache
def _averaged(quantity: Quantity, name: str) -> Quantity:
    """The quantity of an id, this one or a listed one, as its statistics are told: an average of counts has digits behind the point."""
    found = quantity if quantity.id == name else next(one for one in quantities() if one.id == name)
    return replace(found, kind="number") if found.kind == "count" else found


_WRAPPERS = named("wrappers")
_PATHS = tuple(f"{wrapper}/" for wrapper in _WRAPPERS)


def _below(name: str) -> tuple[Match, ...]:
    """What the end of a dotted name means: if strong, or if what stands before it only wraps."""
    above, dot, last = name.partition("/" if name.startswith(_PATHS) else ".")
    if not dot or not last:
        return ()
    wrapped = above.lower() in _WRAPPERS
    if not wrapped and (is_irrelevant(above) or len(taken_apart(last).words) < 2):
        return ()  # `temperature.gpu` is no device
    return tuple(match for match in meanings(last) if match.strong or wrapped)


def _of_words(name: str) -> tuple[Match, ...]:
    words, unit, device = taken_apart(name)
    found = [Match(quantity, strong, own or unit) for quantity, strong, own in _by_fold().get(_fold(name), ())]
    found += [
        Match(quantity, strong, unit, device)
        for quantity, strong, own in _by_words().get(words, ())
        if not own or own == unit
    ]
    seen: dict[str, Match] = {}
    for match in found:
        if _fits(match.quantity, match.unit) and (
            match.quantity.id not in seen or (match.strong and not seen[match.quantity.id].strong)
        ):
            seen[match.quantity.id] = match
    return tuple(seen.values())


_BY = r"(?:\s*(?:by|without)\s*\([^()]*\)\s*)?"
_EXPORTED = regex(rf"(?:(?:sum|max|avg){_BY}\(\s*)?(?P<name>kube_\w{{3,80}})(?:\{{[^{{}}]*\}})?(?:\s*\){_BY})?")


def _of_exported(name: str) -> tuple[Match, ...]:
    """What a series of kube-state-metrics means, folded or with its labels."""
    found = _EXPORTED.fullmatch(name)
    return _of_words(found["name"]) if found and found["name"] != name else ()


_SERIES = regex(r"vllm[:_]([a-z]\w{3,100})(?:\{.*\})?", re.S)


@lru_cache(maxsize=2048)
def _metric_of(bare: str) -> Quantity:
    """A series of the engine that is not listed: told as it is."""
    return Quantity(f"metric.{bare}", "metric", f":vllm:{bare}", "number", low=float("-inf"))


def _fits(quantity: Quantity, unit: str) -> bool:
    """Whether a quantity can be told in a unit."""
    if not unit:
        return True
    if quantity.kind == "bytes":
        return unit in BYTES
    if quantity.kind in ("seconds", "moment", "age"):
        return unit in SECONDS
    if quantity.kind == "share":
        return unit in SHARES
    return False


apart = taken_apart


@cache
def _irrelevant() -> tuple[frozenset[str], frozenset[str]]:
    others = read("others")
    return frozenset(_fold(name) for name in _names(others["names"])), frozenset(others["words"].split())


@lru_cache(maxsize=8192)
def is_irrelevant(name: str) -> bool:
    """Whether a column of this name is known and bears on no memory: a temperature, a clock, a driver's version."""
    names, words = _irrelevant()
    return _fold(name) in names or any(word in words for word in taken_apart(name).words)


@lru_cache(maxsize=8192)
def foreign_program(name: str) -> str:
    """The other program whose tables have a column of this name (`zfs`, `redis`), "" for none."""
    folded = _fold(name)
    return next((program for program, names in _foreign().items() if folded in names), "")


@cache
def _foreign() -> Mapping[str, frozenset[str]]:
    return {
        program: frozenset(_fold(name) for name in _names(names))
        for program, names in read("others")["foreign"].items()
    }
