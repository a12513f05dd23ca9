"""Pseudonyms: the same name gets the same stand-in wherever it occurs, and over a fleet where the map is kept.

A stand-in is the kind and 32 bits of HMAC-SHA-256 (RFC 2104) over kind and name, under a key that nobody gets with the copy,
written as eight consonants: a digit could make a size of it (`user-...7b` in the path of a model), a vowel a word, and one of
`l`, `m`, `p`, `v` a short word of the engines (`vl`, `tp`, `kv`, `mtp`) that a pattern looks for. Addresses keep their shape, in ranges that no host has: 240.0.0.0/4 (RFC 1112, reserved) and 2001:db8::/32
(RFC 3849, documentation); hardware addresses are locally administered. Prompts and secrets are not kept in the map.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from oomdoc.errors import UsageError
from oomdoc.faults import unwritable

NAMED = ("user", "host", "tenant", "email", "ip", "mac", "word")
"""Kinds whose originals the private map holds, in order of rank: of a name with two kinds the first wins."""
_LETTERS = "bcdfghjknqrstwxz"
STAND_IN = re.compile(
    rf"(?:user|host|tenant|email|word|secret)-[{_LETTERS}]{{8}}|redacted-\w+-\d+-chars|hid[{_LETTERS}]{{8}}"
)
"""Every stand-in for a name, a secret or a text; addresses have ranges of their own."""
_MAP_CAP_BYTES = 256 << 20
VERSION = 1


def is_stand_in(text: str) -> bool:
    """Whether a text is a stand-in already, so that a copy may be copied again.

    >>> is_stand_in("user-bdfhknqr"), is_stand_in("redacted-prompt-12-chars"), is_stand_in("user-7")
    (True, True, False)
    """
    return STAND_IN.fullmatch(text) is not None


class Pseudonyms:
    """Stand-ins under one key. `names` holds by kind what was replaced: original -> stand-in (never prompts or secrets)."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key or secrets.token_bytes(32)
        self.names: dict[str, dict[str, str]] = {kind: {} for kind in NAMED}

    def of(self, kind: str, value: str) -> str:
        """The stand-in of a value; a stand-in stands for itself.

        >>> Pseudonyms(b"k" * 32).of("user", "alice") == Pseudonyms(b"k" * 32).of("user", "alice")
        True
        """
        if is_stand_in(value):
            return value
        known = self.names.get(kind)
        if known is not None and value in known:
            return known[value]
        digest = hmac.new(self.key, f"{kind}\0{value}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        made = _shaped(kind, value, digest)
        if known is not None and made != value:
            known[value] = made
        return made

    def learned(self) -> dict[str, str]:
        """Every name that may stand alone in a text, with its stand-in."""
        return {
            name: made
            for kind in reversed(NAMED)
            if kind not in ("ip", "mac")
            for name, made in self.names[kind].items()
        }

    def add(self, kind: str, values: Iterable[str]) -> None:
        """Names that a person gives."""
        for value in values:
            self.of(kind, value)

    def write(self, path: Path) -> None:
        """Keep key and names in a file that only its owner can read, whole or not at all."""
        text = json.dumps(
            {"oomdoc_redaction_map": VERSION, "key": self.key.hex(), "names": self.names}, indent=1, sort_keys=True
        )
        made = None
        try:
            handle, name = tempfile.mkstemp(prefix=".oomdoc-map-", dir=path.parent)  # mode 0600
            made = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            made.replace(path)
        except OSError as problem:
            if made is not None:
                made.unlink(missing_ok=True)
            raise unwritable(problem, f"the map {path}") from None

    @classmethod
    def read(cls, path: Path) -> Pseudonyms:
        """Those of a map that was kept, or new ones where there is no such file."""
        wrong = UsageError(
            f"{path} is no map of `oomdoc redact`", "Name the map of an earlier run, or a file that is not there yet"
        )
        try:
            if path.stat().st_size > _MAP_CAP_BYTES:
                raise wrong
            value = json.loads(path.read_text(encoding="utf-8"))
            if value["oomdoc_redaction_map"] != VERSION:
                raise wrong
            made = cls(bytes.fromhex(value["key"]))
            for kind in NAMED:
                made.names[kind] = {str(name): str(stand_in) for name, stand_in in value["names"].get(kind, {}).items()}
        except FileNotFoundError:
            return cls()
        except OSError as problem:
            raise UsageError(f"the map {path} cannot be read: {problem.strerror or problem}", "Check it") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise wrong from None
        if len(made.key) < 16:
            raise wrong
        return made


def _shaped(kind: str, value: str, digest: bytes) -> str:
    number = int.from_bytes(digest[:8], "big")
    if kind == "ip":
        address = ipaddress.ip_address(value)
        if address.version == 4:
            return str(ipaddress.IPv4Address((0xF << 28) | (number & 0x0FFFFFFF)))
        return str(ipaddress.IPv6Address((0x20010DB8 << 96) | number))
    if kind == "mac":
        return ":".join(f"{byte:02x}" for byte in (0x02, 0, 0, *digest[:3]))
    letters = "".join(_LETTERS[byte >> 4] + _LETTERS[byte & 15] for byte in digest[:4])
    return (
        f"hid{letters}" if kind == "other" else f"{kind}-{letters}"
    )  # a word for a word: it stands within names and paths
