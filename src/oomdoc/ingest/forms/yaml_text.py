"""YAML as plain values: the only module that loads a YAML library, and of it the parser only.

`yaml.compose` gives nodes; no constructor runs, so no tag can make anything but text, numbers, lists and mappings here.
Aliases are refused, since a few of them can stand for billions of nodes; size and depth are bounded. What the parser
refuses, because it is cut or was pasted, goes to the tolerant reader of `launch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oomdoc.ingest import launch
from oomdoc.ingest.forms.trees import Record, exploded

CAP_BYTES = 512 << 10  # a second of the slow parser; status files and exports of tools are below 100 KB
_DEPTH = 32
_NULLS = ("", "~", "null", "Null", "NULL")


class NotYamlError(ValueError):
    """The text is no YAML, or more of it than is read."""


def records(text: str) -> Iterator[Record]:
    """Records of every document, each with the line in which it begins. Raises `NotYamlError`."""
    import yaml  # 20 ms, and few bundles hold any

    if len(text) > CAP_BYTES:
        raise NotYamlError("too long")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = []
    try:
        _check(yaml.parse(text, Loader=loader), yaml)
        for node in yaml.compose_all(text, Loader=loader):
            if isinstance(node, yaml.SequenceNode):
                for entry in node.value:
                    value = _plain(entry, yaml)
                    if isinstance(value, dict):
                        found += list(exploded(entry.start_mark.line + 1, "", value, {}))
            elif node is not None:
                found += list(_mapping(node, yaml))
    except yaml.YAMLError:
        found = list(_of_fragment(text))
    except (RecursionError, ValueError) as problem:
        raise NotYamlError(str(problem)[:200]) from None
    yield from found


def _of_fragment(text: str) -> Iterator[Record]:
    """Records of a text that is cut or was indented by hand, by the reader of pasted manifests, which takes what it can."""
    for document in launch.read_document(text):
        if isinstance(document, list):
            for entry in document:
                if isinstance(entry, dict):
                    yield from exploded(getattr(entry, "line", 1) or 1, "", entry, {})
        elif isinstance(document, dict):
            lists = {name: value for name, value in document.items() if isinstance(value, list) and any(isinstance(entry, dict) for entry in value)}  # fmt: skip
            rest = {name: value for name, value in document.items() if name not in lists}
            above = {name: value for name, value in rest.items() if not isinstance(value, (dict, list))}
            for name, entries in lists.items():
                for entry in entries:
                    if isinstance(entry, dict):
                        yield from exploded(getattr(entry, "line", 1) or 1, name, entry, above)
            if rest:
                yield from exploded(getattr(document, "line", 1) or 1, "", rest, {})


def _mapping(node: Any, yaml: Any) -> Iterator[Record]:
    """A mapping: lists of mappings one level down keep their lines."""
    value = _plain(node, yaml)
    if not isinstance(value, dict):
        return
    lists = {key.value: entry for key, entry in node.value if isinstance(entry, yaml.SequenceNode)}
    rest = {key: entry for key, entry in value.items() if key not in lists}
    for name, entries in lists.items():
        plain = value[name]
        if plain and all(isinstance(entry, dict) for entry in plain):
            above = {key: entry for key, entry in rest.items() if not isinstance(entry, (dict, list))}
            for entry, inner in zip(entries.value, plain, strict=True):
                yield from exploded(entry.start_mark.line + 1, name, inner, above)
        else:
            rest[name] = plain
    if rest:
        yield from exploded(node.start_mark.line + 1, "", rest, {})


def _check(events: Any, yaml: Any) -> None:
    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise NotYamlError("an alias")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise NotYamlError("too deep")


def _plain(node: Any, yaml: Any) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return None if node.style is None and node.value in _NULLS else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_plain(entry, yaml) for entry in node.value]
    return {key.value: _plain(entry, yaml) for key, entry in node.value if isinstance(key, yaml.ScalarNode)}
