"""Which words are known to be safe: those that this program's readers and rules look for, and those that logs are made of.

A word is a run of letters; a name of several (`EngineCore`, `cudaMalloc`) is known where all its parts are. What an ingestor,
a view or a rule compares stands in its source, so their sources are read: no word that a diagnosis rests on can be missing here.
The rest is `vocabulary.txt`.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

from oomdoc.judge.rules import rules_folder
from oomdoc.redact.words import HOME_OF_NOBODY, NOBODY, PUBLIC

SHORT = 2
"""Letters of the longest word that passes unknown: units, flags, ranks. Initials are nobody's name."""
_LONGEST = 100
"""Letters of a run that can be known: names of kernels and of classes have 60."""
_HERE = Path(__file__).parent
_READERS = ("ingest", "views", "physics")
_BESIDE = (
    "units",
    "intake/unwrap",
    "intake/bundle",
    "evidence/tables",
    "assemble/timeline",
    "intake/scan",
    "redact/words",
    "redact/shapes",
)
_SUFFIXES = (".py", ".sql", ".toml")
_NAMES = {"acme", "berlin", "europe", "mark"}  # of examples in our own sources: names all the same
_ESCAPE = re.compile(r"\\[a-zA-Z]")  # `\bfoo` of an expression is no word `bfoo`
_MAYBE = re.compile(r"(?<=[a-z])([a-z])\?(?=[a-z])")  # `capaci?ty` of an expression is two words
_WORD = re.compile(r"[A-Za-z]+")
_CLASS = re.compile(r"(\w+?)(?:For[A-Z][A-Za-z]+|LMHeadModel|Model)")
"""An architecture as a model's configuration names it (`Qwen3ForCausalLM`): the readers take kind and features of a model from it."""
_CUT = 3
"""Letters of a word that a line's end has cut, from which it is known by the rest: fewer begin nearly any word."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CODE = re.compile(
    r"(?:\d{1,4}[dhmsn]s?){1,4}|\d+(?:[eE]\d{1,3}|[KMGTPkmgtp]i?[Bb]?(?:ps)?|[bBxXsSwWeEnLlDgC]|[mun]s|min|it|bits?|[kKMG]?Hz|st|nd|rd|th)|"
    r"\d+[xX](?:\d+[A-Za-z]{0,2}|[A-Za-z]{1,3}\d{1,4})|[A-Za-z]{1,3}\d{1,5}[A-Za-z]?|(?i:e\dm\d(?:fn|fnuz)?|w\d{1,2}a\d{1,2}(?:kv\d{1,2})?)|"
    r"\d{1,8}T\d{1,9}Z?|\d{1,9}Z|0[xX][0-9a-fA-F]+"
)
"""Durations, sizes, counts, ranks, models of hardware, types of numbers, moments: `80gb`, `tp8`, `h100`, `e4m3`, `20T20`."""


@cache
def known_words() -> frozenset[str]:
    """Every word that is known, in lower case, of three letters and more."""
    package = _HERE.parent
    texts = [path for folder in _READERS for path in (package / folder).rglob("*") if path.suffix in _SUFFIXES]
    texts += [package / f"{name}.py" for name in _BESIDE]
    texts += rules_folder().rglob("*.toml")
    found: set[str] = {word for text in (*NOBODY, *PUBLIC, *HOME_OF_NOBODY) for word in _WORD.findall(text)}
    for path in texts:
        found |= _words(path.read_text(encoding="utf-8"))
    own = (_HERE / "vocabulary.txt").read_text(encoding="utf-8")
    found.update(word for line in own.splitlines() if not line.startswith("#") for word in line.split())
    return frozenset(word.lower() for word in found if len(word) > SHORT) - _NAMES


def _words(text: str) -> set[str]:
    text = _ESCAPE.sub(" ", text)
    forms = {text, _MAYBE.sub(r"\1", text), _MAYBE.sub("", text)}
    whole = {word for form in forms for word in _WORD.findall(form)}
    return whole | {part for word in whole if not word.islower() for part in _PART.findall(word)}


@lru_cache(maxsize=1 << 16)
def is_known(run: str) -> bool:
    """Whether a run of letters and digits tells of nobody: a number, a known word or name, a short code.

    >>> [is_known(run) for run in ("137", "cudaMalloc", "H100", "80GB", "umbraglass", "Kq7xVtRw")]
    [True, True, True, True, False, False]
    """
    if run.isdigit() or len(run) <= SHORT:
        return True
    if not run.isascii() or len(run) > _LONGEST:
        return False
    words = known_words()
    if run.lower() in words:
        return True
    if run.isalpha():
        parts = _PART.findall(run)
        plural = run.lower().removesuffix("s")
        return plural in words or all(len(part) > 1 and (len(part) == SHORT or part.lower() in words) for part in parts)
    if _CODE.fullmatch(run):
        return True
    model = _CLASS.fullmatch(run)
    if model is not None and is_known(model[1]) and is_known(run[model.end(1) :]):
        return True
    letters = [part for part in _PART.findall(run) if not part.isdigit()]
    return (
        len(letters) <= 3
        and all(len(part) <= 1 or part.lower() in words for part in letters)
        and any(len(part) > 2 for part in letters)
    )


@cache
def _pieces() -> tuple[frozenset[str], frozenset[str]]:
    words = known_words()
    return (
        frozenset(word[:at] for word in words for at in range(_CUT, len(word))),
        frozenset(word[-at:] for word in words for at in range(_CUT, len(word))),
    )


def is_piece(run: str, at_end: bool) -> bool:
    """Whether a run at the end (else the beginning) of a line is a known word that a terminal or a collector has cut in two.

    >>> is_piece("throughp", True), is_piece("ghput", False), is_piece("umbra", True)
    (True, True, False)
    """
    heads, tails = _pieces()
    return run.isalpha() and run.lower() in (heads if at_end else tails)
