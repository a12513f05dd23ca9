"""YAML and JSON as values that know their lines: what tools print and people write for servers, damaged or cut.

What is well formed is read by the parsers of both languages: of the YAML library the parser only, `yaml.compose`, whose nodes no
constructor ever sees, so that no tag can make anything but text, lists and mappings. What it refuses, because it is cut, was pasted or
is the template of a manifest, goes to a tolerant reader of blocks and flows.
"""

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


def read_document(text: str) -> list[Any]:
    """Documents of a JSON or YAML text as mappings, lists and scalars (`Text`, which knows its line).

    Tags are passed over, and so are aliases that stand for more than is read. Text that is neither gives what could be read; never raises.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in ("{", "["):
        try:
            return [_from_json(json.loads(stripped), 0)]
        except (ValueError, RecursionError):
            pass
    found = _composed(text)
    if found is not None:
        return found
    documents: list[Any] = []
    lines: list[_Line] = []
    for number, raw in enumerate([*text.split("\n"), "---"], 1):
        if raw.startswith("---") and not raw[3:].strip("- \r"):
            if lines:
                documents.append(_block(lines, 0, 0)[0])
            lines = []
            continue
        body = raw.strip()
        if body and not body.startswith("#") and body != "...":
            lines.append(_Line(len(raw) - len(raw.lstrip(" \t")), raw.strip(" \t\r"), number))
    return documents


def _composed(text: str) -> list[Any] | None:
    """The documents of a text that is YAML as the library has it, lists and mappings; None for any other text."""
    if len(text) > _COMPOSED_CAP or not _KEYED.search(text):
        return None
    import yaml  # 20 ms, and few bundles hold any

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text.rstrip("\n") + "\n"  # the end of its last block is the beginning of a line, as of all others
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):  # flat, where making nodes goes down into them
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                return None
        made = _Made(text.split("\n"))
        found = [made.value(node, 0) for node in yaml.compose_all(text, Loader=loader)]
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return found if any(isinstance(document, (dict, list)) for document in found) else None


_COMPOSED_CAP = 4 << 20
_KEYED = regex(r"(?m)^[ \t]*(?:- |[\w\"'./$-]{1,80}:(?:[ \t]|$))")


class _Made:
    """Values of the library's nodes; `left` bounds what aliases may repeat, since a few of them can stand for billions of nodes."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._left = 200_000

    def value(self, node: Any, depth: int) -> Any:
        """A mapping, a list, a `Text`, or None where a key has nothing behind it."""
        self._left -= 1
        if depth > DEPTH or self._left < 0 or node is None:
            return None
        if node.id == "scalar":
            first = node.start_mark.line + 1
            if node.style in ("|", ">"):  # as it stands, for a folded one has no lines any more
                inner = (line.strip() for line in self._lines[first : max(first, node.end_mark.line)])
                return _placed("\n".join(inner).rstrip("\n"), first + 1)
            return _placed(node.value, first) if node.value or node.style else None
        if node.id == "sequence":
            return [self.value(entry, depth + 1) for entry in node.value]
        made, merged = Mapping(), Mapping()
        made.line = node.start_mark.line + 1
        for key, entry in node.value:
            value = self.value(entry, depth + 1)
            if key.value == "<<":
                for other in reversed(value if isinstance(value, list) else [value]):
                    merged.update(other if isinstance(other, dict) else {})
            elif key.id == "scalar":
                made[str(key.value)] = value
        for name, value in merged.items():
            made.setdefault(name, value)
        return made


def _placed(value: str, line: int) -> Text:
    text = Text(value)
    text.line = line
    return text


def _from_json(value: Any, depth: int) -> Any:
    if isinstance(value, dict) and depth < DEPTH:
        return Mapping({str(key): _from_json(item, depth + 1) for key, item in value.items()})
    if isinstance(value, list) and depth < DEPTH:
        return [_from_json(item, depth + 1) for item in value]
    return Text(value) if isinstance(value, str) else value


def _scalar(printed: str, line: int) -> Text:
    value = printed.strip()
    if len(value) > 1 and value[0] in "\"'" and value.endswith(value[0]):
        value = value[1:-1]
    elif value[:1] not in ('"', "'"):
        value = re.sub(r"\s+#.*", "", value)
    return _placed(value, line)


def _block(lines: list[_Line], at: int, depth: int) -> tuple[Any, int]:
    """The value that begins at `lines[at]`, and the index after it."""
    indent, text, _ = lines[at]
    if depth > DEPTH:
        return _scalar(text, lines[at].number), at + 1
    if (text + " ").startswith("- "):
        items: list[Any] = []
        while at < len(lines) and lines[at].indent == indent and (lines[at].text + " ").startswith("- "):
            rest = lines[at].text[1:].lstrip()
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
        return items, at
    if _KEY.match(text):
        mapping = Mapping()
        mapping.line = lines[at].number
        while at < len(lines) and lines[at].indent == indent and (match := _KEY.match(lines[at].text)):
            value, at = _value(match["value"] or "", lines, at, indent, depth)
            mapping[str(_scalar(match["key"], 0))] = value
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


def _value(printed: str, lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    """The value after a key or dash: on the line itself, in a block below it, or spread over lines."""
    number = lines[at].number
    at += 1
    if printed[:1] in ("|", ">") and re.fullmatch(r"[|>][+-]?\d?\s*(?:#.*)?", printed):
        begin = at
        while at < len(lines) and lines[at].indent > indent:
            at += 1
        return _placed("\n".join(line.text for line in lines[begin:at]), number + 1), at
    if not printed or printed.startswith("#"):
        deeper = at < len(lines) and (
            lines[at].indent > indent or (lines[at].indent == indent and lines[at].text.startswith("- "))
        )
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
