"""Refused by default: what no other step has understood passes only where it is known to be safe.

The last step over a text. Words that are not known (`vocabulary`) become stand-ins, the same one for the same word; sentences
of them, strings of several words under a key that no engine writes, long random strings and lists of token ids go as a whole. Numbers,
sizes, times and shapes that tell of nobody stay, and so does every line in which a pattern of the readers has its anchor.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache, lru_cache

from oomdoc.redact import words
from oomdoc.redact.names import STAND_IN
from oomdoc.redact.scanner import scanned
from oomdoc.redact.values import Values
from oomdoc.redact.vocabulary import is_known, is_piece

ENTROPY_BITS = 4.5
HEX_ENTROPY_BITS = 3.0
"""Bits a character above which a string is random: the limits that detect-secrets sets for base64 and for hexadecimal text
(`Base64HighEntropyString`, `HexHighEntropyString`). English text has about 4.1 (Shannon 1951, single letters)."""
_LONG = 20  # characters from which entropy is asked: 4.5 bits need at least 23 different ones, 3.0 need 8
_KNOWN_SHARE = (
    0.4  # of a long string in known words of three letters and more: then it is a path or a name, whatever its entropy
)
_PROSE_WORDS = 5
_PROSE_UNKNOWN = 2
_PROSE_SHARE = 0.25
"""A run of words is a text of somebody with so many words that are not known, and so large a share of them. Lines of engines that
no pattern knows have one or two, and are left with stand-ins for these."""

_SAFE = (
    rf"(?:{STAND_IN.pattern})(?![A-Za-z0-9])"
    r"|(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"  # ids of devices, pods, volumes (RFC 9562)
    r"|\bsha(?:256|512|1):[0-9a-f]{7,128}"
    r"|\b0[xX][0-9a-fA-F]{1,32}\b"
)
_ESCAPED = r"%(?:25)?[0-9a-fA-F]{2}|(?<!\\)\\++(?:[nrtbfv0]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"
_LETTER = r"(?:[^\W_]|[\udc80-\udcff])"  # bytes of an eight-bit code page are letters
_RUN = re.compile(rf"{_SAFE}|{_ESCAPED}|(?P<run>{_LETTER}+)")
_RANDOM = re.compile(rf"{_SAFE}|(?P<long>(?<![A-Za-z0-9])[A-Za-z0-9+/_=.~-]{{{_LONG},4000}})")
_GROUPED = re.compile(rf"{_SAFE}|(?P<long>(?<![\w-])[A-Za-z0-9]{{4,6}}(?:-[A-Za-z0-9]{{4,6}}){{2,7}}(?![\w-]))")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_LETTERS = r"[^\W\d_]{1,40}+(?:['’-][^\W\d_]{1,40}+){0,5}+"
_PROSE = re.compile(
    rf"(?<![^\W\d_]){_LETTERS}[,;:.!?]?(?: [\"“(]?(?:{_LETTERS}|\d{{1,4}})[,;:.!?”\")]{{0,2}}){{{_PROSE_WORDS - 1},}}+"
)
_WORD = re.compile(r"[^\W_]+")
_TALK = re.compile(r"(?:^|[\s\"'(>])[^\W\d_]{2,}[,;:.!?]?(?: [^\W\d_][\w'’]*[,;:.!?]{0,2}){2,}")
_CODE = re.compile(r"(?:^| )--?[a-z]|[\"']:|\(\)|[=;{}]|://")
_SHORTEST_SAID = 8
_SPOKEN = re.compile(
    r"(?P<key>[A-Za-z_][\w.-]{0,79})(?P<mark>\\{0,7}[\"']?)[ \t]{0,4}(?:=>|[:=])[ \t]{0,8}\[?(?P<open>\\{0,7}[\"'])(?P<value>(?:(?!(?P=open))[^\n])*+)(?P=open)"
)
_ITEM = re.compile(
    r"(?P<before>[\[,(]\s{0,40})(?P<open>\\{0,7}[\"'])(?P<value>(?:(?!(?P=open))[^\n])*+)(?P=open)(?=\s{0,40}[,\])])"
)
_PARAMS = re.compile(r"\b(?:Sampling|GuidedDecoding|StructuredOutputs|BeamSearch|Pooling)Params\(")
_LITERAL = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'")
_IDS = re.compile(
    r"(?:\b(?:tokens?|ids?|input|prompt|output)[\w \]\"'=:.-]{0,24}|\b(?:tensor|array)\()(?P<list>\[[\[\]\d,\s.…-]{8,}\])",
    re.I,
)


@cache
def _anchors() -> re.Pattern[str]:
    """What the readers' patterns look for first: a text that holds one may be evidence."""
    from oomdoc.ingest import torch_oom, vllm_log, wordings
    from oomdoc.ingest.text_log import PATTERNS

    found = {anchor for pattern in PATTERNS for anchor in pattern.anchors}
    found |= {*torch_oom.ANCHORS, *wordings.ANCHORS, *vllm_log.REFUSAL_OPENINGS}
    literals = sorted(found, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, literals)))


class Refusal:
    """Replaces what is not known to be safe."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def text(self, text: str) -> str:
        """The text with everything replaced that is not known; its lines stay."""
        lines = text.split("\n")
        places = [place for place, line in enumerate(lines) if _is_strange(line)]
        if places:  # detectors look where something is not known: on lines of an engine's own words they find nothing
            made = scanned(self.values, "\n".join(lines[place] for place in places)).split("\n")
            for place, line in zip(places, made, strict=True):
                lines[place] = line
            text = "\n".join(lines)
        if "Params(" in text:
            text = self._params(text)
        if '"' in text or "'" in text:
            text = _SPOKEN.sub(self._spoken, text)
            text = _ITEM.sub(self._item, text)
        if "[" in text:
            text = _IDS.sub(
                lambda match: match[0][: match.start("list") - match.start()] + re.sub(r"\d+", "0", match["list"]), text
            )
        text = _RANDOM.sub(self._random, text)
        text = _GROUPED.sub(self._grouped, text)
        text = _PROSE.sub(self._prose, text)
        return _RUN.sub(self._run, text)

    def _run(self, match: re.Match[str]) -> str:
        run = match["run"]
        if run is None or is_known(run):
            return match[0]
        text, end = match.string, match.end()
        if (end >= len(text) or text[end] == "\n") and is_piece(run, at_end=True):
            return run
        if (not match.start() or text[match.start() - 1] == "\n") and is_piece(run, at_end=False):
            return run
        return self._other(run)

    def _other(self, run: str) -> str:
        return self.values.made("other", run.lower())

    def _random(self, match: re.Match[str]) -> str:
        long = match["long"]
        if long is None or not is_random(long):
            return match[0]
        parts = long.split("/")
        if any(len(part) > 2 and part.isalpha() and is_known(part) for part in parts):  # a path: what is random in it
            return "/".join(
                self.values.made("secret", part) if len(part) >= _LONG and is_random(part) else part for part in parts
            )
        return self.values.made("secret", long)

    def _grouped(self, match: re.Match[str]) -> str:
        """A key in groups as licences have it: one that is not known gives the whole away."""
        long = match["long"]
        if long is None or sum(any(map(str.isdigit, group)) and not is_known(group) for group in long.split("-")) < 2:
            return match[0]
        return self.values.made("secret", long)

    def _prose(self, match: re.Match[str]) -> str:
        text = match[0]
        found = _WORD.findall(STAND_IN.sub(" ", text))
        unknown = sum(not is_known(word) for word in found)
        if 2 * text.count(",") > len(found):  # cells of a table
            return text
        if unknown < _PROSE_UNKNOWN or unknown < _PROSE_SHARE * len(found) or "redacted-" in text:
            return text
        whole = match.string
        begin, end = whole.rfind("\n", 0, match.start()) + 1, whole.find("\n", match.end())
        if _anchors().search(whole, begin, end if end >= 0 else len(whole)):
            return text
        return self.values.prompt(text)

    def _spoken(self, match: re.Match[str]) -> str:
        key = words.fold(match["key"])
        return match[0] if key in words.SPOKEN_BY_ENGINES else self._said(match)

    def _item(self, match: re.Match[str]) -> str:
        return self._said(match)

    def _said(self, match: re.Match[str]) -> str:
        value = match["value"]
        if not is_said(value):
            return match[0]
        begin, end = match.start("value") - match.start(), match.end("value") - match.start()
        return match[0][:begin] + self.values.prompt(value) + match[0][end:]

    def _params(self, text: str) -> str:
        """Stop strings, schemas and expressions of a request are its sender's words."""
        from oomdoc.redact.blocks import closing

        out: list[str] = []
        at = 0
        for match in _PARAMS.finditer(text):
            if match.start() < at:
                continue
            end = closing(text, match.end() - 1)
            line = text.find("\n", match.end())
            line = len(text) if line < 0 else line
            end = line if end < 0 or end > line else end
            made = _LITERAL.sub(
                lambda found: found[0][0] + self.values.prompt(found[0][1:-1]) + found[0][-1], text[match.end() : end]
            )
            out += [text[at : match.end()], made]
            at = end
        return "".join([*out, text[at:]])


def _is_strange(line: str) -> bool:
    return any(run and not is_known(run) for run in _RUN.findall(line))


def is_said(value: str) -> bool:
    """Whether a value is a text of several words that no pattern of the readers looks for: somebody's, not an engine's.

    >>> is_said("the heron counts lanterns"), is_said("CUDA out of memory. Tried to allocate 2.00 GiB"), is_said("--model x --port 1")
    (True, False, False)
    """
    if len(value) < _SHORTEST_SAID or "redacted-" in value or not _TALK.search(value):
        return False
    return not _CODE.search(value) and _anchors().search(value) is None


@lru_cache(maxsize=1 << 15)
def is_random(text: str) -> bool:
    """Whether a string without blanks is random by its entropy, and not a path or a name of known words.

    >>> is_random("Zq3vXk9LmTwRbYcNpHsDfGjKlQwErT"), is_random("/usr/lib/python3.12/site-packages/vllm/worker.py")
    (True, False)
    """
    if text.isdigit() or not any(character.isalpha() for character in text):
        return False
    limit = HEX_ENTROPY_BITS if _HEX.fullmatch(text) else ENTROPY_BITS
    if entropy(text) < limit:
        return False
    covered = sum(
        len(word)
        for word in _WORD.findall(text)
        if len(word) > 2 and (word.isdigit() or (is_known(word) and not word[0].isdigit()))
    )
    return covered < _KNOWN_SHARE * len(text)


def entropy(text: str) -> float:
    """Bits a character (Shannon) of a text by the frequency of its own characters; 0 for none.

    >>> entropy("aabb"), entropy("")
    (1.0, 0.0)
    """
    if not text:
        return 0.0
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values()) + 0.0
