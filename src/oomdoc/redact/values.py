"""What stands for one value: by the kind of the field that holds it, or by its own shape, wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from oomdoc.redact import shapes
from oomdoc.redact.names import Pseudonyms, is_stand_in
from oomdoc.redact.shapes import Shape
from oomdoc.redact.vocabulary import is_known
from oomdoc.redact.words import GENERIC, HOME_OF_NOBODY, NOBODY, PUBLIC

_LONG_NUMBER = 24  # digits: what is longer is no amount
NUMBER = re.compile(r"[-+]?\d[\d.,:_eE+-]*\s?(?:[KMGT]i?B|ms|s|%)?|0x[0-9a-fA-F]+|NaN|nan|inf")
INTEGER = re.compile(r"\d+")
_HIDDEN = re.compile(
    r"\*+(?:HIDDEN|TOKEN_[\w*]*|REDACTED)?\**|<(?:redacted|hidden|masked|removed|secret|set|unset|none|omitted|your|nil)\b[^<>]*>|"
    r"\$(?-i:[A-Z_][A-Z0-9_]*)|\$\{\w+(?::?[-?+][^}]*)?\}|\$\(.*|\{\{.*|\[?REDACTED\]?|x{4,}|os\.environ.*",
    re.I,
)

_RUN = re.compile(r"[A-Za-z0-9]+")

Act = Callable[[str, str], str]


_PROGRESS = re.compile(
    r"\s*\d{1,3}%\|[ █▏▎▍▌▋▊▉#=>-]*\|\s*\d+/\d+ \[[\d:?<,. ]*(?:s/it|it/s)?"
    r"(?:, est\. speed input: [\d.]+ toks/s, output: [\d.]+ toks/s)?\]\s*"
)
"""A bar of tqdm behind `Processed prompts:`: figures of the run, and nobody's words."""


def prompt_stand_in(text: str) -> str:
    """What stands for a prompt: its length stays. Empty text, numbers, bars of progress and stand-ins stay as they are."""
    if not text.strip() or is_stand_in(text.strip()) or NUMBER.fullmatch(text) or _PROGRESS.fullmatch(text):
        return text
    lines = text.count("\n")
    return f"redacted-prompt-{len(text)}-chars" + "\n" * lines


class Tally:
    """How many values of each kind were replaced."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, kind: str) -> None:
        """One more."""
        self.counts[kind] = self.counts.get(kind, 0) + 1


class Values:
    """The stand-ins of values, with one set of pseudonyms; counts what it replaces."""

    def __init__(self, pseudonyms: Pseudonyms, tally: Tally | None = None) -> None:
        self.pseudonyms = pseudonyms
        self.tally = tally or Tally()

    # ---- of a kind that is told

    def name(self, kind: str, value: str) -> str:
        """The stand-in of a name that a field or a place tells; nobody's names, numbers and stand-ins stay."""
        bare = value.strip().strip("\"'")
        if not bare or bare.lower() in NOBODY or NUMBER.fullmatch(bare) or is_stand_in(bare) or _HIDDEN.fullmatch(bare):
            return value
        if kind == "user" and bare.lower() in HOME_OF_NOBODY:
            return value
        if shapes.EMAIL.regex.fullmatch(bare):
            kind = "email"
        elif shapes.IPV4.regex.match(bare) or bare.count(":") > 1:
            return self.shaped(value)
        elif kind == "host":
            head, colon, port = bare.partition(":")
            if _public(head) or head.lower() in NOBODY:
                return value
            if colon and port.isdigit():
                return value.replace(bare, self.name("host", head) + colon + port)
            if "," in bare:
                return value
        if kind not in ("user", "host", "tenant", "email"):
            return value
        return value.replace(bare, self.made(kind, bare))

    def secret(self, value: str) -> str:
        """The stand-in of what opens something; words that say there is none, references and what is hidden already stay."""
        if (
            not value.strip()
            or value.lower() in NOBODY
            or (len(value) < _LONG_NUMBER and NUMBER.fullmatch(value))
            or is_stand_in(value)
            or _HIDDEN.fullmatch(value)
        ):
            return value
        if (
            value in ("Bearer", "Basic", "bearer", "basic")
            or set(value) <= set("[]{}()<>/|-*.,")
            or is_known_path(value)
        ):
            return value
        return self.made("secret", value)

    def prompt(self, text: str) -> str:
        """What stands for something that was said; it tells the length."""
        made = prompt_stand_in(text)
        if made != text:
            self.tally.add("prompt")
        return made

    def inside(self, inner: str, kind: str) -> str:
        """What stands for the whole of a value, without its quotes, of a kind of `words.kind_of`."""
        if kind in ("prompt", "weak"):
            return self.prompt(inner)
        if kind == "ids":
            return INTEGER.sub("0", inner)
        if kind == "secret":
            scheme = re.match(r"(?:Bearer|Basic|Token|Digest)\s+", inner, re.I)
            cut = scheme.end() if scheme else 0
            return inner[:cut] + self.secret(inner[cut:])
        if kind == "host" and "," in inner:
            return ",".join(self.name(kind, part) for part in inner.split(","))
        return self.name(kind, inner) if len(inner) < 256 else inner

    def marked(self, text: str) -> str:
        """What stands for content that is no text: pictures, encoded files."""
        self.tally.add("prompt")
        return f"redacted-prompt-{len(text)}-chars"

    def made(self, kind: str, value: str) -> str:
        """The pseudonym of a value, counted."""
        self.tally.add(kind)
        return self.pseudonyms.of(kind, value)

    # ---- by their shape

    def shaped(self, text: str) -> str:
        """The text with everything replaced that its shape alone tells: tokens, addresses, homes, names of hosts."""
        low = text.lower()
        for shape in shapes.SAID:
            if _has(shape, text, low):
                text = self._sub(shape, text, lambda kind, value: self.prompt(value))
        for shape in shapes.SECRETS:
            if _has(shape, text, low):
                text = self._sub(shape, text, lambda kind, value: self._shaped_secret(value))
        if "@" in low or "%40" in low:
            text = self._sub(shapes.EMAIL, text, self._mail)
        if "+" in low:
            text = self._sub(shapes.PHONE, text, self.made)
        text = self._sub(shapes.CARD, text, self._card)
        text = self._sub(shapes.IBAN, text, lambda kind, value: value if is_known(value) else self.made(kind, value))
        for shape in (*shapes.HOMES, *shapes.LINE_HEADS, shapes.EC2):
            if _has(shape, text, low):
                text = self._sub(shape, text, self.name)
        if "." in low:
            text = shapes.IPV4.regex.sub(self._address, text)
            if _has(shapes.FQDN, text, low):
                text = self._sub(shapes.FQDN, text, self._domain)
        if ":" in low:
            text = shapes.IPV6.regex.sub(self._address, text)
            text = self._sub(shapes.MAC, text, self._hardware)
        if "-" in low:
            text = self._sub(shapes.MAC_DASHED, text, self._hardware)
        if "://" in low:
            text = self._sub(shapes.URL_HOST, text, self._domain)
        return text

    def _sub(self, shape: Shape, text: str, act: Act) -> str:
        def replaced(match: re.Match[str]) -> str:
            value = match[shape.group]
            if value is None:
                return match[0]
            begin, end = match.start(shape.group) - match.start(), match.end(shape.group) - match.start()
            made = act(shape.kind, value)
            return match[0][:begin] + made + "\n" * (value.count("\n") - made.count("\n")) + match[0][end:]

        return shape.regex.sub(replaced, text)

    def _shaped_secret(self, value: str) -> str:
        if is_stand_in(value) or value.lower().startswith(("redacted-", "secret-")) or value.endswith("_token"):
            return value
        return self.made("secret", value)

    def _card(self, kind: str, value: str) -> str:
        digits = [int(digit) for digit in value if digit.isdigit()]
        doubled = [sum(divmod(2 * digit, 10)) if place % 2 == 0 else digit for place, digit in enumerate(digits)]
        return self.made(kind, value) if sum(doubled) % 10 == 0 else value  # Luhn, over sixteen digits

    def _mail(self, kind: str, value: str) -> str:
        local, _, domain = value.rpartition("@")
        if local.lower() == "git":
            return value
        if is_stand_in(local):  # the credentials of an address
            return f"{local}@{self._domain('host', domain)}"
        return self.made(kind, value)

    def _hardware(self, kind: str, value: str) -> str:
        plain = value.lower().replace("-", ":")
        if plain.startswith(("02:00:00:", "ff:ff:ff:", "00:00:00:")) or (
            "-" in value and not re.search("[a-f]", plain)
        ):
            return value  # a stand-in, nobody's, or a date and a time
        return self.made(kind, plain)

    def _domain(self, kind: str, value: str) -> str:
        bare = value.rstrip(".")
        low = bare.lower()
        if (
            _public(low)
            or low in NOBODY
            or is_stand_in(low)
            or GENERIC.fullmatch(low)
            or low.rpartition(".")[2].isdigit()
        ):
            return value
        return self.made("host", bare) + value[len(bare) :]

    def _address(self, match: re.Match[str]) -> str:
        value = match[0]
        before = match.string[max(0, match.start() - 16) : match.start()]
        if shapes.VERSION_BEFORE.search(before):
            return value
        made = _address_of(value)
        if made is None:
            return value
        return self.made("ip", made)


_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?")


def is_known_path(value: str) -> bool:
    """Whether a value is the path of a file, of parts that tell of nobody: what a secret is kept in, not the secret.

    >>> is_known_path("/run/secrets/token"), is_known_path("/Umber77Kestrel")
    (True, False)
    """
    return _PATH.fullmatch(value) is not None and all(is_known(run) for run in _RUN.findall(value))


@lru_cache(maxsize=4096)
def _address_of(value: str) -> str | None:
    """The address in its usual form, if it is one that tells of somebody."""
    import ipaddress

    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return None
    if (
        address.is_loopback
        or address.is_unspecified
        or value.startswith(("255.", "169.254.", "2001:db8:", "2001:0db8:"))
    ):
        return None
    if address.version == 4 and int(address) >> 28 == 0xF:
        return None  # a stand-in
    if (
        address.version == 6
        and sum(part != "" for part in value.split(":")) < 3
        and not value.lower().startswith(("fe80", "fd", "fc", "2"))
    ):
        return None
    return value


def _public(domain: str) -> bool:
    parts = domain.lower().rstrip(".").split(".")
    return any(".".join(parts[at:]) in PUBLIC for at in range(len(parts) - 1))


def _has(shape: Shape, text: str, low: str) -> bool:
    looked = low if shape.regex.flags & re.I else text
    return any(word in looked for word in shape.words)
