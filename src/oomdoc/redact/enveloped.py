"""Documents of several lines within what a collector put around each line: taken out, redacted as what they are, put back.

A YAML file that a log prints stands behind a stamp, a pod's name or in a string of JSON on every line; only without these is
it YAML again. Lines of one instance (a pod, a service of compose) belong together, however they are mixed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from oomdoc.ingest.record import TAG, peel

_ASKED = 60  # lines with something in them by which a text is judged
_SHARE = 0.5  # of these with an envelope
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')


def inner(line: str) -> str:
    """What a line says inside its collector's envelope and its process tag."""
    text = peel(line)[0]
    tag = TAG.match(text)
    return text[tag.end() :] if tag and tag["pid"] else text


def put_back(line: str, told: str, made: str) -> str:
    """A line with another text in its envelope."""
    if told == made or not told.strip():
        return line
    bare = line.rstrip("\r\n")
    if bare.endswith(told):
        return bare[: len(bare) - len(told)] + made + line[len(bare) :]

    def string(match: re.Match[str]) -> str:
        try:
            value = json.loads(match[0])
        except ValueError:
            return match[0]
        at = value.find(told)
        return (
            match[0]
            if at < 0
            else json.dumps(value[:at] + made + value[at + len(told) :], ensure_ascii=match[0].isascii())
        )

    replaced = _JSON_STRING.sub(string, line)
    return made if replaced == line else replaced


def inside(text: str, act: Callable[[str], str]) -> str:
    """The text with `act` done to what stands in the envelopes of its lines, as one text for each instance; lines stay."""
    lines = text.split("\n")
    asked = [line for line in lines[: 4 * _ASKED] if line.strip()][:_ASKED]
    if len(asked) < 2 or sum(peel(line)[0] != line.rstrip("\r") for line in asked) < _SHARE * len(asked):
        return text
    by_instance: dict[str, list[tuple[int, str]]] = {}
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        told, _, more = peel(line)
        told = _indented(line, told)
        if "\n" not in told:
            by_instance.setdefault(str(more.get("instance", "")), []).append((place, told))
    for held in by_instance.values():
        made = act("\n".join(told for _, told in held) + "\n").removesuffix("\n").split("\n")
        if len(made) == len(held):
            for (place, told), new in zip(held, made, strict=True):
                lines[place] = put_back(lines[place], told, new)
    return "\n".join(lines)


def _indented(line: str, told: str) -> str:
    """What a line says with its indentation, which is its place in a document: all but one of the blanks before it."""
    bare = line.rstrip("\r\n")
    if not bare.endswith(told):
        return told
    at = len(bare) - len(told)
    blanks = at - len(bare[:at].rstrip(" "))
    return " " * (blanks - 1) + told
