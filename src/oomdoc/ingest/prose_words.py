"""Words of the field that the readers of free text share: sizes, numbers in words, what works and what fails."""

from __future__ import annotations

from oomdoc.regexes import regex

LINE_CAP = 2000
"""Characters of a line that are looked at: a sentence is shorter, and every pattern of free text is tried on it."""

SIZE = r"(?<![\w.])\d[\d,]*(?:\.\d+)?\s?[KMGT]i?B\b"
NUMBERS = {"a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8}
COUNT = r"(?:\d{1,4}|" + "|".join(name for name in NUMBERS if len(name) > 2) + r")"

WORKS = (
    r"(?:\b(?:works?|worked|working|(?:runs?|ran)(?! out)|starts?|started|succeeds?|succeeded|fine|ok|okay|cures?|cured|helps?|helped|"
    r"fix(?:es|ed)?|go(?:es)? through|went through|solves?|solved|avoids?|loads?|gone|goes away|stable|serves?|passes|passed|comes? up|came up|"
    r"no (?:oom|crash|error|problem|failure)s?|completes?|completed)\b|(?<!不)正常|成功|解决|可以了|没问题)"
)
FAILS = r"\b(?:not|still|also|even|neither|fails?|failed|crash(?:es|ed)?|same (?:error|problem|oom|failure))\b|n't\b"

_BULLET = regex(r"^(?:[-*•>]|\d{1,2}[.)]|#{1,6})\s+")


def plain(raw: str) -> str:
    """A line without bullets, Markdown marks and surrounding space."""
    text = raw.strip()
    for _ in range(3):
        text = _BULLET.sub("", text)
    return text.replace("**", "").replace("`", "").strip()[:LINE_CAP]
