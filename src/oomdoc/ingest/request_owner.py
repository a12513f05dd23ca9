"""Whose a request is where no column says so by its name: a conversation whose turns are numbered, a prompt that comes again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    lengths = {told[0] for told in sizes.values()}
    return (
        len(sizes) >= _PROMPTS
        and 2 * len(again) >= len(sizes)
        and all(len(set(told)) == 1 for told in sizes.values())
        and 2 * len(lengths) > len(sizes)
    )
