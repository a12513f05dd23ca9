"""What a redacted copy says of itself: how many values of each kind were replaced, and what was left out and why.

It travels in the copy as its last member, so that whoever reads the copy can tell *redacted* from *never there*. It holds
no original and nothing from which one follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.model import Unread

NAME = "oomdoc-redaction.json"
KIND = "redaction"
SAYS = (
    "this is a redacted copy: names, addresses and secrets are stand-ins and prompts are left out; what its manifest names as "
    "left out was in the original (see coverage)"
)
VERSION = 1
CAP_BYTES = 8 << 20
_ENTRIES_CAP = 10_000
_TEXT_CAP = 1000


@dataclass(frozen=True)
class Manifest:
    """`replaced` counts values by kind; `files` does by path in the copy; `left_out` is path and reason.

    `renamed` counts members whose path was changed; `name` is what the bundle is called, redacted.
    """

    replaced: Mapping[str, int]
    files: Mapping[str, Mapping[str, int]]
    left_out: tuple[tuple[str, str], ...] = ()
    renamed: int = 0
    members: int = 0
    name: str = "copy"

    def to_json(self, **more: Any) -> str:
        """The text of the member, the same for the same copy; `more` is put in for those who only ask."""
        value = {
            "oomdoc_redaction": VERSION,
            "says": "Names, addresses, secrets and texts of people were replaced by stand-ins; numbers, sizes and times were not.",
            "members": self.members,
            "replaced": dict(sorted(self.replaced.items())),
            "renamed_members": self.renamed,
            "left_out": [{"path": path, "why": why} for path, why in self.left_out],
            "files": {path: dict(sorted(counts.items())) for path, counts in sorted(self.files.items())},
            **more,
        }
        return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def is_manifest(head: bytes) -> bool:
    """Whether a source is the manifest of a redacted copy."""
    return head.lstrip()[:1] == b"{" and b'"oomdoc_redaction": ' in head[:200]


def left_out(path: str, pieces: Iterable[bytes]) -> Iterator[Unread]:
    """What the original held and the copy does not, by the manifest at `path`, which anybody may have written."""
    prefix = path[: -len(NAME)] if path.endswith(NAME) else ""
    data = b""
    for piece in pieces:
        data += piece[: max(CAP_BYTES - len(data), 0)]
    try:
        value: Any = json.loads(data)
        entries = [(str(entry["path"])[:_TEXT_CAP], str(entry["why"])[:_TEXT_CAP]) for entry in value["left_out"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        yield Unread(path, "the manifest of a redacted copy, damaged")
        return
    for name, why in entries[:_ENTRIES_CAP]:
        yield Unread(prefix + name, why)
