"""Shell text as words: quotes, comments, line ends, variables; units, supervisors and image files written as the shell has them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from oomdoc.regexes import regex


class Word(NamedTuple):
    """A word of a shell text, the line it begins in, and whether quotes were around it."""

    text: str
    line: int
    quoted: bool = False


_PIECE = regex(
    r"(?P<joined>\\[ \t]*\r?\n)|(?P<end>\r?\n)|(?P<space>[ \t\r\f\v]+)|(?P<escaped>\\.)"
    r"|\"(?P<double>(?:\\.|[^\"\\])*)\"|'(?P<single>[^']*)'|(?P<plain>[^\s\"'\\]+)|(?P<odd>[\s\S])"
)
END = Word("\n", 0)
OPERATORS = frozenset(("|", "||", "&&", ";", "&", "then", "do"))
ASSIGNMENT = regex(r"(?:\$env:)?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.S)
NUMBER = regex(r"-\d+(?:\.\d+)?")
REDIRECT = regex(r"\d?(?:>>?|<)(?:&\d)?.*")
_REFERENCE = regex(r"\$(?:\{(?P<braced>\w+)(?::?[-=](?P<default>[^}]*))?\}|(?P<bare>\w+))")


def shell_words(text: str) -> Iterator[Word]:
    """Shell words with their lines; a line's end is a word of its own. Unbalanced quotes are letters."""
    line, piece, begun, quoted = 1, "", 0, False
    at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        assert match is not None  # the last alternative takes any character
        at = match.end()
        kind = match.lastgroup
        if kind in ("space", "joined", "end"):
            if begun:
                yield Word(piece, begun, quoted)
                piece, begun, quoted = "", 0, False
            if kind == "end":
                yield END
        elif kind == "plain" and not begun and match["plain"].startswith("#"):
            end = text.find("\n", match.start())  # a comment, the whole line after it
            at = end if end >= 0 else len(text)
        else:
            begun = begun or line
            quoted = quoted or kind in ("double", "single")
            inner = match[str(kind)]
            piece += (
                inner[1:] if kind == "escaped" else re.sub(r"\\([\"\\$`])", r"\1", inner) if kind == "double" else inner
            )
        line += match[0].count("\n")
    if begun:
        yield Word(piece, begun, quoted)


_PROMPT = regex(
    r"(?m)^[ \t]*(?:[\w.@:~/-]*[$%❯][ \t]+|PS [^>\n]*> |> )(?=\S)|^[ \t]*\d{1,2}[:.)] (?=(?:[A-Z_][A-Z_0-9]*=\S+ )*(?:vllm|python3?|docker) )"
)
_DASHES = regex(r"(?<=\s)[–—](?=[a-z])|(?<=\s)[–—]{2}(?=[a-z])")
_UNIT_START = regex(r"(?m)^[ \t]*ExecStart(?:Pre|Post)?[ \t]*=[ \t]*[-@:+!]*(?=[^\s{])")
_UNIT_VARIABLES = regex(r"(?m)^[ \t]*Environment[ \t]*=[ \t]*(?=\S)")
_PROGRAM = regex(r"(?m)^[ \t]*\[(?:program|eventlistener|group):[^\]\n]+\]")
_PROGRAM_START = regex(r"(?m)^[ \t]*command[ \t]*=[ \t]*(?=\S)")
_PROGRAM_VARIABLES = regex(r"(?m)^[ \t]*environment[ \t]*=[ \t]*(?P<all>\S.*)$")
_VECTOR = regex(r"(?m)^[ \t]*(?P<what>ENTRYPOINT|CMD)[ \t]+(?P<words>\[.*\])[ \t\r]*(?P<next>\n(?=[ \t]*CMD[ \t]+\[))?")
_OPTIONS_KEPT = regex(r"(?m)^(?P<name>[ \t]*(?:export )?[A-Za-z_]\w{0,60})=(?=--[a-z][\w-]*(?:[ =]|$))")
"""`EXTRA=--enable-lora --max-loras 16`: a file of variables holds options without quotes, the first is one of them."""


def prepared(text: str) -> str:
    """Prompts off, typographic dashes back to `--`; units, supervisors and image files as the shell would have them.

    No line moves: settings are told with the line in which they stand.
    """
    text = _OPTIONS_KEPT.sub(r"\g<name>= ", _DASHES.sub("--", _PROMPT.sub("", text)))
    if "ExecStart" in text:
        text = _UNIT_VARIABLES.sub("export ", _UNIT_START.sub("", text))
    if _PROGRAM.search(text):
        text = _PROGRAM_START.sub("", text)
        text = _PROGRAM_VARIABLES.sub(
            lambda match: "export " + re.sub(r"(?<=[\"'\w]),(?=\w+=)", " ", match["all"]), text
        )
    return _VECTOR.sub(_vector_line, text)


def _vector_line(match: re.Match[str]) -> str:
    """`ENTRYPOINT ["vllm", "serve"]` as words; a `CMD` below goes on with them."""
    try:
        words = json.loads(match["words"])
    except (ValueError, RecursionError):
        return match[0]
    if not all(isinstance(word, str) for word in words):
        return match[0]
    joined = " ".join(shlex.quote(word) for word in words)
    return joined + (" \\\n" if match["what"] == "ENTRYPOINT" and match["next"] else match["next"] or "")


def with_values(value: str, values: dict[str, str]) -> str | None:
    """A value with shell variables put in; None where one is unknown."""
    if "$" not in value:
        return value
    unknown = False

    def put(match: re.Match[str]) -> str:
        nonlocal unknown
        name = match["braced"] or match["bare"]
        found = values.get(name, match["default"])
        unknown = unknown or found is None
        return found or ""

    result = _REFERENCE.sub(put, value)
    return None if unknown or not result else result
