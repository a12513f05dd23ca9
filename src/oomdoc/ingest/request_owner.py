"""Whose a request is where no column says so by its name: a conversation whose turns are numbered, a prompt that comes again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oomdoc.ingest.vocabulary.words import named
from oomdoc.regexes import regex

_TURNS = frozenset(("turn", "turnno", "turnid", "turnindex", "turnnumber", "round", "hop"))
_SINGLE = frozenset(("id", "requestid", "reqid", "xrequestid", "traceid", "spanid", "responseid", "messageid"))


def conversation_of(names: Sequence[str]) -> str | None:
    """The column that tells whose a request is where turns are numbered: the id beside them, whatever it is called; None without.

    >>> conversation_of(("ts", "call_id", "turn")), conversation_of(("ts", "request_id", "turn"))
    ('call_id', None)
    """
    folded = {name: "".join(letter for letter in name.lower() if letter.isalnum()) for name in names}
    if not _TURNS & set(folded.values()):
        return None
    return next((name for name, plain in folded.items() if plain.endswith("id") and plain not in _SINGLE), None)


_ID = regex(r"\S{1,64}")
_PROMPTS = 3  # of two lengths nearly every column of a table of two kinds of requests tells


def names_prompts(cells: Iterable[tuple[str, str]]) -> bool:
    """Whether the cells of a column name prompts, by the lengths beside them: they come again, each with one length, others with another.

    >>> names_prompts([("a", "90"), ("b", "80"), ("c", "70")] * 2), names_prompts([("1", "90"), ("1", "80"), ("2", "90")] * 2)
    (True, False)
    """
    sizes: dict[str, list[str]] = {}
    for value, size in cells:
        if not _ID.fullmatch(value):
            return False  # a prompt itself is no name of it
        sizes.setdefault(value, []).append(size)
    again = [told for told in sizes.values() if len(told) > 1]
    if len(sizes) < _PROMPTS or 2 * len(again) < len(sizes):
        return False
    lengths = {told[0] for told in sizes.values()}
    if all(len(set(told)) == 1 for told in sizes.values()):
        return 2 * len(lengths) > len(sizes)
    # a figure that goes with the length, such as a time, is no name
    return len(sizes) > _PROMPTS and not any(_is_number(name) for name in sizes) and _decides(list(sizes.values()))


def _is_number(name: str) -> bool:
    try:
        return float(name) is not None
    except ValueError:
        return False


_TEXTS = named("texts")
"""What people send again with another question: named after such a text, a column tells whose the request is."""
_OF_A_TEXT = named("of_a_text")
_WORDS = regex(r"[a-z]+")


def names_a_text(name: str, values: Sequence[str]) -> bool:
    """Whether a column is named after a text that is sent, and its values come again: `case_file` with A, B, A, B.

    >>> names_a_text("case_file", list("ABCABC")), names_a_text("case_file", list("ABCDEF")), names_a_text("prompt_kind", list("ABAB"))
    (True, False, False)
    """
    words = set(_WORDS.findall(name.lower()))
    if not words & _TEXTS or words & _OF_A_TEXT or not all(_ID.fullmatch(value) for value in values):
        return False
    again = sum(values.count(value) > 1 for value in set(values))
    return len(set(values)) > 1 and 2 * again >= len(set(values))


_DECIDED = 0.8  # of the spread of the lengths; a question of another length behind each text leaves some


def _decides(told: Sequence[Sequence[str]]) -> bool:
    """Whether lengths differ between names and hardly within one: a document that is asked something else each time.

    The share of the variance that the names account for, less what as many names would account for by chance.

    >>> _decides([["900", "905"], ["700", "702"], ["500", "508"], ["820", "815"]]), _decides([["900", "500"], ["700", "890"], ["510", "900"]])
    (True, False)
    """
    try:
        lengths = [[float(size) for size in sizes] for sizes in told]
    except ValueError:
        return False
    every = [size for sizes in lengths for size in sizes]
    within, free = sum(_squares(sizes) for sizes in lengths), len(every) - len(lengths)
    spread = _squares(every) / (len(every) - 1)
    return free > 0 and spread > 0 and 1 - within / free / spread >= _DECIDED


def _squares(sizes: Sequence[float]) -> float:
    mean = sum(sizes) / len(sizes)
    return sum((size - mean) ** 2 for size in sizes)
