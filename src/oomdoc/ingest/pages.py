"""Pages and catalogues that document a program: Markdown with links to its siblings, manuals, change logs, lists of messages.

    ## Context                      [[message]]                          .TH OOM 5
    See [the tables](tables.md).    text = "Out of memory: {size}"       .SH DESCRIPTION

Nobody who reports a failure links to a page beside it, sets twenty names in back-ticks without saying "I" once, or writes a
message with a hole for its figure. `text_form` asks, and decides what a person's own words take away again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from oomdoc.regexes import regex

LINKS = 2
"""Links to pages of the same set that make a page of it: a note beside logs may name one other file."""
HEADINGS = 3
"""Headings from which names in back-ticks, or one link, count: a person's note of one failure has a heading or two."""
NAMES = 10
"""Names in back-ticks that make a reference page: a question quotes a flag or two, an issue has its own words as well."""
ENTRIES = 3
"""Entries with a sentence in them from which a table of texts is a catalogue."""
HOLES = 5
"""Messages with a hole for a figure from which a list is one of messages that a program can print."""

_LINK = regex(
    r"\]\((?!\w+:|#|//)[^()\s]*?(?:\.(?:md|markdown|rst|html?|adoc|toml|ipynb)|/)(?:#[^()\s]*)?\)"
    r"|:(?:doc|ref):`|^\.\. toctree::|\{%-? (?:link|include|highlight)\b|\[\[[\w /-]+\]\]",
    re.MULTILINE,
)
_NAME = regex(r"``.{1,300}?``|(?<!`)`[^`\n]{1,300}`(?!`)")
_CLOCK = regex(r"(?<![\d:+-])\d{1,2}:\d\d\b(?!\])")  # no offset of a zone
_MOMENT = regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?$|(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$")
_I = regex(r"\bI(?:'(?:m|ve|d|ll))?\b")
_FRONT = regex(
    r"---\n(?:[\w-]+:.*\n){1,20}?(?:layout|sidebar_\w+|weight|nav_order|permalink|slug|displayTitle|hide_title): ?.*\n"
)
_DECISION = regex(
    r"(?i)\W*(?:status|context|decision|choice|alternatives|consequences|price|rationale|motivation|non-goals|options considered)\W*$"
)
_RELEASE = regex(r"[a-z0-9][\w+.-]* \([\w.:~+-]+\) [\w -]+; ?urgency=\w+|\W{0,6}(?:version |release )?v?\d+\.\d+(?:\.\d+)?\W{0,3}(?:\(?\d{4}-\d\d-\d\d\)?|\(?unreleased\)?|release notes)\s*$", re.IGNORECASE)  # fmt: skip
_NEWS = regex(r"(?i).*\b(?:release notes|change ?log|what's new|to-?do list)\b")
_ROFF = regex(r"\.(?:TH|SH|SS|Dd|Dt|Sh) ")
_HOLE = regex(r"<\*>|%(?:\(\w+\))?(?:[-+0 #]*\d*(?:\.\d+)?)[sdrfuixg]\b|(?<![\w$={:])\{\}(?!\})")
_TAG = regex(r"</?(?:p|code|a|li|ul|em|pre|strong|h\d)(?: [^<>]{0,200})?>")


def signs(lines: Sequence[str], headings: Sequence[str], text: str) -> int:
    """How many signs speak for a page of documentation; 3 make one. `text` is what stands outside of fences and is no record.

    Links to sibling pages (3), a site generator's front matter (3), the headings of a decision record (3), releases one after the
    other or their notes (3), names in back-ticks under several headings in a text without times and without "I" (3).
    """
    links = sum(1 for _ in _LINK.finditer(text))
    if headings and (links >= LINKS or (links and len(headings) >= HEADINGS)):
        return 3
    if _FRONT.match("\n".join(lines[:24]) + "\n"):
        return 3
    if sum(bool(_DECISION.match(heading)) for heading in headings) >= HEADINGS:
        return 3
    if sum(bool(_RELEASE.match(line)) for line in lines) >= 2 or any(map(_NEWS.match, (*lines[:1], *headings[:1]))):
        return 3
    words, names = _NAME.subn("", text)
    told = names >= NAMES and len(headings) >= HEADINGS
    return 3 if told and not _CLOCK.search(words) and not _I.search(words) else 0


def is_manual(lines: Sequence[str]) -> bool:
    """Whether a text is the source of a manual page: macros of roff that name it and begin its sections."""
    return sum(bool(_ROFF.match(line)) for line in lines) >= 2


def is_marked_up(text: str) -> bool:
    """Whether the strings of JSON are pieces of pages: documentation as tools hand it on."""
    return sum(1 for _, _ in zip(_TAG.finditer(text), range(4 * ENTRIES), strict=False)) == 4 * ENTRIES


def lists_messages(told: Sequence[str]) -> bool:
    """Whether a text lists what a program can print: messages with holes for their figures."""
    holes = sum(bool(_HOLE.search(line)) for line in told)
    return holes >= HOLES and 4 * holes >= len(told)


def is_catalogue(data: bytes) -> bool:
    """Whether a text is TOML, whole or cut off behind its last table, of which several entries have sentences and none a
    time or an age: what happened has one.
    """
    if b"\n[" not in data:
        return False
    import tomllib

    text = data.decode("utf-8", "replace")
    for cut in (text, text[: text.rfind("\n[") + 1]):
        try:
            tables = tomllib.loads(cut)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        entries = [one for value in tables.values() for one in (value if isinstance(value, list) else [value])]
        nested = [entry for entry in entries if isinstance(entry, dict)]
        if any(_MOMENT.match(str(value)) for entry in nested for value in entry.values()):
            return False
        return sum(any(len(string.split()) >= 4 for string in _strings(entry)) for entry in nested) >= ENTRIES
    return False


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)
