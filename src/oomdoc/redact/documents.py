"""Documents by their structure: YAML and JSON of several lines, sections of INI and TOML.

PyYAML's composer says where each scalar of a document stands and constructs nothing (JSON is YAML but for tabs); what is to
go is replaced in its place, so that lines stay. A document that does not parse is left to the expressions of `fields`, and
what neither has understood to `refuse`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.redact.names import is_stand_in
from oomdoc.redact.refuse import is_said
from oomdoc.redact.values import Values
from oomdoc.redact.words import MANY_VALUES, ROLES, SPOKEN_BY_ENGINES, fold, kind_of

CAP_CHARACTERS = 2 << 20  # libyaml takes about 0.3 s for as much; what is longer is left to `fields`
_DEPTH = 60  # of containers: objects of Kubernetes have 15
_DEEPEST = 200
_LIKE = re.compile(
    r"^[ \t]*(?:- )*(?:[\"']?[\w./@$*-]+[\"']?[ \t]*:(?=[ \t]|\r?$)|[\"'][^\"'\n]*[\"']:?|- ?|[\[\]{}]|---|#|[\d.]+,?\r?$|\r?$)",
    re.M,
)
_LINE = re.compile(r"^", re.M)
_LIKE_SHARE = 0.5  # of the lines: block texts and long values have lines of their own
_SPLIT = re.compile(r"^---(?=[ \t\r]|$)[^\n]*\n?", re.M)
_SECTION = re.compile(r"^[ \t]*\[{1,2}[ \t]*([\w.\" :/@-]{1,200}?)[ \t]*\]{1,2}[ \t]*(?:[#;].*)?\r?$")
_SETTING = re.compile(r"^([ \t]*[\w.\"'-]{1,120}[ \t]*[=:][ \t]*)([\"']?)([^\n]*?)(\2)([ \t]*(?:[#;][^\"'\n]*)?\r?)$")
_ASSIGNED = re.compile(r"([A-Za-z_][\w.-]{0,79})=(.+)", re.S)
_PAIRS = (("name", "value"), ("key", "value"), ("Name", "Value"), ("Key", "Value"))
_WHO = {"id", "name", "login", "username", "slug", "title", "displayname", "sub"}
_SECRET_DATA = {"data", "stringData", "binaryData"}

Edit = tuple[int, int, str]


class Documents:
    """Replaces the scalars of documents."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def text(self, text: str) -> str:
        """The text with the documents in it redacted as what they are; as it is where it is none."""
        if "\n" not in text or len(text) > CAP_CHARACTERS:
            return text
        if "]\n" in text or "]\r" in text:
            text = self._sections(text)
        if not is_document(text):
            return text
        out: list[str] = []
        at = 0
        for mark in (*_SPLIT.finditer(text), None):
            end = mark.start() if mark else len(text)
            out.append(self._document(text[at:end]))
            if mark:
                out.append(mark[0])
                at = mark.end()
        return "".join(out)

    def _document(self, text: str) -> str:
        if text.count("\n") < 2 or ":" not in text:
            return text
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            if not _is_shallow(yaml.parse(text, Loader=loader)):
                return text
            root = yaml.compose(text, Loader=loader)
            edits = sorted(set(_Walk(self.values, text).edits(root)))
        except (yaml.YAMLError, RecursionError, ValueError):
            return text
        out: list[str] = []
        at = 0
        for begin, end, made in edits:
            if begin >= at:
                out += [text[at:begin], made, "\n" * (text.count("\n", begin, end) - made.count("\n"))]
                at = end
        return "".join([*out, text[at:]])

    def _sections(self, text: str) -> str:
        """Settings below `[credentials]`: all of them are secrets."""
        inside = False
        lines = text.split("\n")
        for place, line in enumerate(lines):
            head = _SECTION.match(line)
            if head:
                inside = any(kind_of(part.strip('" ')) == "secret" for part in re.split(r"[.:]", head[1]))
            elif inside and (setting := _SETTING.match(line)) and setting[3]:
                lines[place] = setting[1] + setting[2] + self.values.secret(setting[3]) + setting[4] + setting[5]
        return "\n".join(lines)


def _is_shallow(events: Iterable[Any]) -> bool:
    """Whether no container of a document lies deeper than `_DEEPEST`: the composer calls itself for each, in C, without a limit."""
    depth = 0
    for event in events:
        name = type(event).__name__
        if name in ("SequenceStartEvent", "MappingStartEvent"):
            depth += 1
            if depth > _DEEPEST:
                return False
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            depth -= 1
    return True


def is_document(text: str) -> bool:
    """Whether most lines of a text look like those of YAML or of JSON over several lines.

    >>> is_document("a:\\n  b: 1\\n"), is_document("INFO a b\\nINFO c\\n")
    (True, False)
    """
    head = text[:100_000]
    return len(_LIKE.findall(head)) > _LIKE_SHARE * (head.count("\n") + 1)


class _Walk:
    """Where what of one document is replaced."""

    def __init__(self, values: Values, text: str) -> None:
        self.values = values
        self.text = text
        self._starts = [match.start() for match in _LINE.finditer(text)]
        self._seen: set[int] = set()

    def edits(
        self, node: Any, key: str = "", kind: str | None = None, of_secret: bool = False, depth: int = 0
    ) -> Iterator[Edit]:
        """The edits of a node below `key`: `kind` is what the fields around it say, `of_secret` that it lies in a list of Secrets."""
        if node is None or depth > _DEPTH or (node.id != "scalar" and id(node) in self._seen):
            return
        if node.id == "scalar":
            yield from self._scalar(node, key, kind)
            return
        self._seen.add(id(node))  # an alias is the same node once more
        if node.id == "sequence":
            yield from self._sequence(node, key, kind, of_secret, depth)
        else:
            yield from self._mapping(node, kind, of_secret, depth)

    def _mapping(self, node: Any, kind: str | None, of_secret: bool, depth: int) -> Iterator[Edit]:
        fields = {key.value: value for key, value in node.value if key.id == "scalar"}
        named = {name: value.value for name, value in fields.items() if value.id == "scalar"}
        is_secret = named.get("kind") == "Secret" or (of_secret and "kind" not in named)
        is_list = named.get("kind") == "SecretList"
        paired = next(((one, two) for one, two in _PAIRS if one in named and two in fields), None)
        for key, value in node.value:
            name = key.value if key.id == "scalar" else ""
            own = kind_of(name) if name else None
            if key.id != "scalar":
                yield from self.edits(key, "", kind, depth=depth + 1)
            if paired and name == paired[1]:
                own = kind_of(named[paired[0]]) or own
            if is_secret and name in _SECRET_DATA:
                own = "secret"
            if kind == "secret":
                own = "secret"
            elif kind in ("prompt", "weak", "ids"):
                own = None if fold(name) in ROLES and value.id == "scalar" else kind if own is None else own
            elif kind in ("user", "host", "tenant") and own is None and fold(name) in _WHO:
                own = kind
            if own == "weak" and value.id == "mapping":
                own = "secret" if fold(name) == "tokens" else None
            yield from self.edits(value, name, own, is_list and name == "items", depth + 1)

    def _sequence(self, node: Any, key: str, kind: str | None, of_secret: bool, depth: int) -> Iterator[Edit]:
        option: str | None = None
        many = False
        for item in node.value:
            own = kind
            if item.id == "scalar" and kind is None:
                value = item.value
                if value.startswith("-") and " " not in value:
                    bare, equals, _ = value.lstrip("-").partition("=")
                    option = kind_of(bare)
                    many = fold(bare) in MANY_VALUES
                    if option == "secret" and equals:
                        yield from self._assigned(item, value)
                        option = None
                    continue
                if option in ("secret", "user", "tenant"):
                    own = option
                    option = option if many else None
                elif (assigned := _ASSIGNED.fullmatch(value)) and kind_of(assigned[1]):
                    yield from self._assigned(item, value)
                    continue
            yield from self.edits(item, key, own, of_secret, depth + 1)

    def _assigned(self, node: Any, value: str) -> Iterator[Edit]:
        name, _, own = value.partition("=")
        kind = kind_of(name.lstrip("-"))
        if kind and own and own in (held := self.text[slice(*self._place(node))]):
            begin, end = self._place(node)
            yield begin, end, held.replace(own, self.values.inside(own, "prompt" if kind == "weak" else kind))

    def _scalar(self, node: Any, key: str, kind: str | None) -> Iterator[Edit]:
        value = node.value
        if not value.strip() or is_stand_in(value):
            return
        if kind is None and (fold(key) in SPOKEN_BY_ENGINES or not is_said(value)):
            return
        if kind == "weak" and not node.style and " " not in value:
            return
        begin, end = self._place(node)
        if kind in (None, "prompt", "weak", "ids"):
            made = self.values.inside(value, kind if kind == "ids" else "prompt").rstrip("\n")
        else:
            made = self.values.inside(value.strip(), kind)
        if made == value.strip() or made == value:
            return
        mark = node.style if node.style in ("'", '"') else ""
        yield begin, end, f"{mark}{made}{mark}"

    def _place(self, node: Any) -> tuple[int, int]:
        begin, end = (
            self._starts[mark.line] + mark.column if mark.line < len(self._starts) else len(self.text)
            for mark in (node.start_mark, node.end_mark)
        )
        return begin, end
