"""YAML and JSON as values that know their lines: what tools print and people write for servers, damaged or cut."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from oomdoc.ingest.launch.calls import CALL_CAP, arguments
from oomdoc.regexes import regex


class Text(str):
    """A scalar of a document that knows its line."""

    line: int = 0


class Mapping(dict[str, Any]):
    """A mapping of a document that knows the line it begins in."""

    line: int = 0


_KEY = regex(r"(?P<key>\"[^\"]*\"|'[^']*'|[^\s#:\[\]{}\"'-][^:#\n]*?|-[\w.-]+)\s*:(?:\s+(?P<value>.*))?$", re.S)


DEPTH = 60


class _Line(NamedTuple):
    indent: int
    text: str
    number: int


class _Lines(list[_Line]):
    """Lines of one document, and the values that its anchors name; `left` bounds what aliases may repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: dict[str, Any] = {}
        self.left = 100_000

    def alias(self, printed: str, line: int) -> Any:
        """The value that `*name` stands for; the text itself where there is none, or where aliases repeat too much."""
        value = self.anchors.get(printed[1:].partition(" ")[0])
        if value is not None:
            self.left -= _size(value)
        return value if value is not None and self.left > 0 else _scalar(printed, line)


def _size(value: Any) -> int:
    """Values in a value, itself among them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inner))


_ANCHOR = regex(r"(?:![\w!:/.,-]*\s+)?&(?P<name>[^\s\[\]{},]+)(?:\s+(?P<rest>.*))?$", re.S)


_ALIAS = regex(r"\*[^\s\[\]{},*]+(?:\s+#.*)?")


_TAG = regex(r"!(?:![a-z]+|[A-Za-z][\w:/.-]*)?(?:\s+|$)")


def read_document(text: str) -> list[Any]:
    """Documents of a JSON or YAML text as mappings, lists and scalars (`Text`, which knows its line).

    The YAML is what tools print and people write for servers: block and flow mappings and lists, block scalars,
    comments, anchors with their aliases and merges. Tags are passed over. Text that is neither gives what could be read; never raises.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in ("{", "["):
        try:
            return [_from_json(json.loads(stripped), 0)]
        except (ValueError, RecursionError):
            pass
    documents: list[Any] = []
    lines = _Lines()
    for number, raw in enumerate([*text.split("\n"), "---"], 1):
        if raw.startswith("---") and not raw[3:].strip("- \r"):
            if lines:
                documents.append(_block(lines, 0, 0)[0])
            lines = _Lines()
            continue
        body = raw.strip()
        if body and not body.startswith("#") and body != "...":
            lines.append(_Line(len(raw) - len(raw.lstrip(" \t")), raw.strip(" \t\r"), number))
    return documents


def _from_json(value: Any, depth: int) -> Any:
    if isinstance(value, dict) and depth < DEPTH:
        return Mapping({str(key): _from_json(item, depth + 1) for key, item in value.items()})
    if isinstance(value, list) and depth < DEPTH:
        return [_from_json(item, depth + 1) for item in value]
    return Text(value) if isinstance(value, str) else value


_ESCAPED = regex(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([ \"/\\0abefnrtv]))")


_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3])


def _scalar(printed: str, line: int) -> Text:
    value = printed.strip()
    if len(value) > 1 and value[0] in "\"'" and value.endswith(value[0]):
        quote, value = value[0], value[1:-1]
        value = _ESCAPED.sub(_unescaped, value) if quote == '"' else value.replace("''", "'")
    elif value[:1] not in ('"', "'"):
        value = re.sub(r"\s+#.*", "", value)
    text = Text(value)
    text.line = line
    return text


def _block(lines: _Lines, at: int, depth: int) -> tuple[Any, int]:
    """The value that begins at `lines[at]`, and the index after it."""
    indent, text, _ = lines[at]
    if depth > DEPTH:
        return _scalar(text, lines[at].number), at + 1
    if text == "-" or text.startswith("- "):
        items: list[Any] = []
        while (
            at < len(lines)
            and lines[at].indent == indent
            and (lines[at].text == "-" or lines[at].text.startswith("- "))
        ):
            rest = lines[at].text[1:].lstrip()
            anchor = _ANCHOR.match(rest)
            if anchor:
                rest = anchor["rest"] or ""
            if not rest:
                at += 1
                if at < len(lines) and lines[at].indent > indent:
                    value, at = _block(lines, at, depth + 1)
                    items.append(value)
            elif rest.startswith("- ") or _KEY.match(rest):
                lines[at] = _Line(indent + len(lines[at].text) - len(rest), rest, lines[at].number)
                value, at = _block(lines, at, depth + 1)
                items.append(value)
            else:
                value, at = _value(rest, lines, at, indent, depth)
                items.append(value)
            if anchor and items:
                lines.anchors[anchor["name"]] = items[-1]
        return items, at
    if _KEY.match(text):
        mapping, merged = Mapping(), Mapping()
        mapping.line = lines[at].number
        while at < len(lines) and lines[at].indent == indent and (match := _KEY.match(lines[at].text)):
            value, at = _value(match["value"] or "", lines, at, indent, depth)
            key = str(_scalar(match["key"], 0))
            if key == "<<":
                for other in reversed(value if isinstance(value, list) else [value]):
                    named = lines.alias(other, 0) if isinstance(other, str) and other[:1] == "*" else other
                    merged.update(named if isinstance(named, dict) else {})
            else:
                mapping[key] = value
        for key, value in merged.items():
            mapping.setdefault(key, value)
        if (
            at < len(lines)
            and lines[at].indent >= indent
            and not _KEY.match(lines[at].text)
            and not lines[at].text.startswith("- ")
        ):
            at += 1  # prose between keys: passed over
            if at < len(lines) and lines[at].indent == indent and _KEY.match(lines[at].text):
                more, at = _block(lines, at, depth + 1)
                mapping.update(more)
        return mapping, at
    return _scalar(text, lines[at].number), at + 1


def _value(printed: str, lines: _Lines, at: int, indent: int, depth: int) -> tuple[Any, int]:
    """The value after a key or dash: on the line itself, in a block below it, or spread over lines."""
    number = lines[at].number
    if anchor := _ANCHOR.match(printed):
        value, at = _value(anchor["rest"] or "", lines, at, indent, depth)
        lines.anchors[anchor["name"]] = value
        return value, at
    if tag := _TAG.match(printed):
        printed = printed[tag.end() :]
    at += 1
    if _ALIAS.fullmatch(printed):
        return lines.alias(printed, number), at
    if printed[:1] in ("|", ">") and re.fullmatch(r"[|>][+-]?\d?\s*(?:#.*)?", printed):
        begin = at
        while at < len(lines) and lines[at].indent > indent:
            at += 1
        text = Text("\n".join(line.text for line in lines[begin:at]))
        text.line = number + 1
        return text, at
    if not printed or printed.startswith("#"):
        deeper = at < len(lines) and (
            lines[at].indent > indent or (lines[at].indent == indent and lines[at].text.startswith("- "))
        )
        if deeper and not lines[at].text.startswith("- ") and lines[at].indent <= indent:
            return None, at
        return _block(lines, at, depth + 1) if deeper else (None, at)
    if printed[0] in "[{":
        while not _closed(printed) and at < len(lines) and len(printed) < CALL_CAP:
            printed += " " + lines[at].text
            at += 1
        return _flow(printed, number), at
    value = printed
    while at < len(lines) and lines[at].indent > indent and not _KEY.match(lines[at].text):
        value += " " + lines[at].text  # a plain scalar goes on in deeper lines
        at += 1
    return _scalar(value, number), at


def _closed(printed: str) -> bool:
    return printed.count("[") + printed.count("{") <= printed.count("]") + printed.count("}")


def _flow(printed: str, line: int, depth: int = 0) -> Any:
    """A flow list or mapping; those inside it to the same depth as blocks."""

    def inner_value(part: str) -> Any:
        part = part.strip()
        return _flow(part, line, depth + 1) if part[:1] in ("[", "{") and depth < DEPTH else _scalar(part, line)

    try:
        value = _from_json(json.loads(printed), 0)
    except (ValueError, RecursionError):
        inner = re.sub(r"\s+#[^\]}]*$", "", printed).strip()[1:-1]
        parts = [piece for _, piece in arguments(inner) if piece.strip()]
        if printed[0] == "[":
            return [inner_value(part) for part in parts]
        value = Mapping()
        for part in parts:
            key, colon, rest = part.partition(":")
            if colon:
                value[str(_scalar(key, 0))] = inner_value(rest)
    if isinstance(value, Mapping):
        value.line = line
    return value
