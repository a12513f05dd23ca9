"""Where values stand that only their surroundings tell: items and plain lines of YAML, the data of a Kubernetes Secret.

Everything here finds places in a text (begin, end) and replaces nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Place = tuple[int, int]

_TOKENS = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[\[\]{}()]", re.S)
_NAME_END = re.compile(r"\s{0,40}:")
_MAPPING = re.compile(r"[\"']?[\w.@/-]{1,80}[\"']?:(?:[ \t]|\r?$)|[{\[]|[|>][+-]?\d?\r?$")
_BLOCK_MARK = re.compile(r"(?:[&!]\S{1,80}[ \t]{1,8}){0,2}[|>][+-]?\d?[+-]?[ \t\r]{0,8}$")
_DATA = re.compile(
    r"(?<![\w.-])([\"']?)(?:data|stringData|binaryData)\1[ \t]{0,8}:[ \t]{0,8}(?:(?P<brace>\{)|(?=\r?\n))"
)
_KIND = re.compile(r"(?<![\w.-])[\"']?kind[\"']?[ \t]{0,8}:[ \t]{0,8}[\"']?(\w{1,60})")
_OBJECT = re.compile(r"(?<![\w.-])[\"']?apiVersion[\"']?[ \t]{0,8}:")
_ENTRY = re.compile(r"[ \t]*+(?:- )?[\"']?[\w./-]{1,253}[\"']?:[ \t]*+")
_BESIDE = 60  # characters before `apiVersion` in which a manifest written by hand may have its kind


def closing(text: str, at: int) -> int:
    """Behind the bracket that closes the one at a place, strings passed over; -1 where it is not there.

    >>> closing('[{"a": "]"}] b', 0), closing("[1, 2", 0)
    (12, -1)
    """
    depth = 0
    for match in _TOKENS.finditer(text, at):
        token = match[0]
        if token in "[{(":
            depth += 1
        elif token in "]})":
            depth -= 1
            if depth <= 0:
                return match.end()
    return -1


def column(text: str, at: int) -> int | None:
    """How far a key of YAML is indented; None where it is not the first of its line.

    >>> column("a:\\n  - b: 1", 7), column("x a: 1", 2)
    (4, None)
    """
    begin = text.rfind("\n", 0, at) + 1
    return at - begin if not text[begin:at].strip(" -\t") else None


def lines_at(text: str, at: int) -> Iterator[Place]:
    """The lines from a place on, each without its end."""
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield at, end
        at = end + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def items(text: str, at: int, indent: int) -> tuple[int, list[Place]]:
    """A list of plain values below a key that stands at `indent`: its end, and where its values stand.

    >>> items("a:\\n- one\\n- two\\n  more\\nb: 1", 2, 0)
    (22, [(5, 8), (11, 14), (17, 21)])
    """
    found: list[Place] = []
    begin = text.find("\n", at) + 1
    end = at
    dash = -1
    for start, stop in lines_at(text, begin) if begin else ():
        line = text[start:stop]
        bare = line.lstrip(" ")
        depth = _indent(line)
        if bare.startswith("- ") and depth >= indent and dash in (-1, depth):
            value = bare[2:].strip()
            if not value or (_MAPPING.match(value) and not _BLOCK_MARK.match(value)):
                break
            dash = depth
            if not _BLOCK_MARK.match(value):
                first = start + line.index(value, depth + 2)
                found.append((first, first + len(value)))
        elif dash >= 0 and bare.strip() and depth > dash and not _MAPPING.match(bare):
            found.append((start + depth, start + len(line.rstrip())))
        else:
            break
        end = min(stop + 1, len(text))
    return end, found


def plain_lines(text: str, at: int, indent: int) -> list[Place]:
    """Where a plain value goes on after its first line: lines indented deeper than its key, which are no keys themselves.

    >>> plain_lines("a: one\\n  two\\nb: 1", 6, 0)
    [(9, 12)]
    """
    found: list[Place] = []
    for start, stop in lines_at(text, at + 1):
        line = text[start:stop].rstrip()
        bare = line.lstrip(" ")
        if not bare or _indent(line) <= indent or bare.startswith("- ") or _MAPPING.match(bare):
            break
        found.append((stop - len(text[start:stop].lstrip(" ")), start + len(line)))
    return found


def secret_data(text: str) -> Iterator[Place]:
    """The values below `data` and `stringData` of every Kubernetes Secret in a text, as YAML or JSON.

    >>> text = "apiVersion: v1\\ndata:\\n  a: eHl6\\nkind: Secret"
    >>> [text[begin:end] for begin, end in secret_data(text)]
    ['eHl6']
    """
    objects = [match.start() for match in _OBJECT.finditer(text)]
    kinds = [(match.start(), match[1]) for match in _KIND.finditer(text)]
    for match in _DATA.finditer(text):
        if _kind_at(match.start(), objects, kinds, text) != "Secret":
            continue
        if match["brace"]:
            end = closing(text, match.end() - 1)
            for token in _TOKENS.finditer(text, match.end(), end if end > 0 else len(text)):
                if token[0][0] in "\"'" and not _NAME_END.match(text, token.end()):
                    yield token.start() + 1, token.end() - 1
        else:
            indent = column(text, match.start())
            if indent is not None:
                yield from _entries(text, match.end(), indent)


def _kind_at(at: int, objects: list[int], kinds: list[tuple[int, str]], text: str) -> str:
    """The kind of the object in which a place lies. kubectl writes apiVersion first and kind after the data, people before it."""
    begin = max([place for place in objects if place < at] + [text.rfind("\n---", 0, at)])
    end = min([place for place in objects if place > at], default=len(text))
    rule = text.find("\n---", at, end)
    end = rule if rule >= 0 else end
    inside = [(place, kind) for place, kind in kinds if begin <= place < end]
    before = [kind for place, kind in inside if place < at]
    after = [kind for place, kind in inside if place > at]
    beside = [kind for place, kind in kinds if begin - _BESIDE <= place < begin]
    nearest = before[-1:] or after[:1] or beside[-1:]
    return nearest[0] if nearest else ""


def _entries(text: str, at: int, indent: int) -> Iterator[Place]:
    for start, stop in lines_at(text, text.find("\n", at) + 1):
        line = text[start:stop]
        if not line.strip():
            continue
        if _indent(line) <= indent:
            return
        entry = _ENTRY.match(line)
        if entry is None:
            yield start + _indent(line), start + len(line.rstrip())
            continue
        begin, end = start + entry.end(), start + len(line.rstrip())
        value = text[begin:end]
        if value.strip("\"'") and not _BLOCK_MARK.match(value):
            quoted = value[0] in "\"'" and value[-1] == value[0]
            yield begin + quoted, end - quoted
