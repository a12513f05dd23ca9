"""Devices in words: "8 x RTX A6000", "GPU 0: 45.2 of 47.5 GiB", "MIG 1g.10gb of an A100".

Sizes of devices are binary, as cards are sold: "24 GB" is 24 GiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from oomdoc.ingest.prose_words import COUNT, NUMBERS, SIZE
from oomdoc.regexes import regex
from oomdoc.units import parse_size

_GPU_NAME = regex(
    r"(?:(?:NVIDIA|AMD|Intel|GeForce|Tesla|Quadro|Radeon|Instinct|Habana|Huawei) )*"
    r"(?:(?:RTX|GTX)[ -]?(?:PRO[ -]?)?(?:A\d{4}|\d{4})(?: ?(?:Ti|SUPER|Ada|D|Laptop|Max-Q|Blackwell|Generation|Server|"
    r"Workstation|Edition|GPU))*|TITAN \w+|GH200|GB[23]00|GB10|B[1-3]00A?|H[128]00|H20|A100X?|A800|A10G?|A16|A2|A30|"
    r"A40|L4|L20|L40S?|T4|V100S?|P100|P40|K80|MI\d{2,3}[AX]?|Gaudi ?\d|Ascend \w+|910B\d?|Arc \w+|DGX Spark|"
    r"Jetson \w+(?: \w+)?)(?:[- ](?:SXM\d?|PCIe|PCIE|NVL|HBM\d\w?|\d{2,3}G(?:i?B)?\b))*(?!\w|\.\d)"
)
MIG = regex(r"\b(?:\dc\.)?\dg\.\d{1,3}gb(?:\+\w+(?:\.\w+)?)?", re.I)
_GPU_KEY = regex(
    r"^(?P<key>gpus?|gpu (?:models?|type|name|model name)|cards?|graphics(?: card)?|accelerators?|hardware|devices?|"
    r"machine|node|server|host|instance|environment|gpu models and configuration)\s*[:=]\s*(?P<value>\S.*)$",
    re.I,
)
_GPU_INDEX = regex(r"(?:^|[:\s])GPU ?(?P<gpu>\d{1,3})\s*:\s*(?P<value>[A-Za-z].*)$")
_TIMES = regex(
    rf"(?<![\w.-])(?P<count>{COUNT})\s?(?:[x×*]\s?| )(?=[A-Z(\d])"
    rf"|\b[x×]\s?(?P<after>\d{{1,3}})\b|\((?P<each>\d{{1,3}})[x×]?\)"
)
_ALL_CARDS = regex(r"\b(?:gpu|device|vram|video) ?memory\b[^:=]{0,40}\b(?:all|total|together|sum|combined)\b[^:=]{0,40}[:=]\s*" rf"(?P<size>{SIZE})", re.I)  # fmt: skip
_ONE_CARD = regex(r"^(?:gpu memory|vram|device memory|memory per (?:gpu|card|device)|gpu memory per (?:gpu|card))[^:=]{0,40}[:=]\s*" rf"(?P<size>{SIZE})", re.I)  # fmt: skip
HOST_RAM = regex(
    rf"^(?:host |system |cpu |node )?(?:ram|memory|main memory)\s*[:=]\s*(?P<size>{SIZE})"
    rf"|(?P<beside>{SIZE}) (?:of )?(?:host |system |main |cpu )?(?:ram\b|(?:host|system|main|cpu) memory)",
    re.I,
)
_ELSEWHERE = regex(
    r"\b(?:than|compared|unlike|instead of|also on|even on|(?:works?|worked|fine|ok|starts?|fits?) (?:on|with) an?)\b",
    re.I,
)
_IN_PROSE = regex(
    r"(?:\b(?:on|over|with|using|across|have|has|has got|of)\s+(?:a single |single |an? |the |one )?|^)"
    rf"(?:(?P<count>{COUNT})\s?(?:[x×]\s?| ))?(?=[A-Z])"
)


_QUERIED = regex(r", ?\d{4,6} MiB\b")
"""What `nvidia-smi --query-gpu=name,memory.total` prints behind a name, wherever somebody quotes it."""
_AMOUNT = r"\d{1,3}(?:[ ,]\d{3})+(?:\.\d+)?|\d{1,7}(?:[.,]\d{1,3})?"
_OCCUPIED = regex(
    r"(?:(?<![^\W\d_])(?:gpu|card|carte|karte|tarjeta|scheda|显?卡) ?#?(?P<gpu>\d{1,3})|(?<!\d)(?P<before>\d{1,2}) ?号(?:gpu|显?卡))(?![A-Za-z\d.])"
    rf"(?P<between>[^|;。\n]{{0,30}}?)(?<![\w.,/-])(?P<part>{_AMOUNT}) ?(?P<unit>[KMGT]i?[Bo]\b)?\s*(?P<free>free\s)?\s*(?:used |in use )?"
    rf"(?:(?:/|of|out of|,? ?total|von|sur|de|di|z|，?共)\s*(?P<total>{_AMOUNT}) ?(?P<whole>[KMGT]i?[Bo])(?![A-Za-z]))?(?P<after>\s*(?:is |are )?free)?",
    re.I,
)
_NO_USE = regex(r"(?i)need|alloc|limit|model|weight|wants|fits")


def occupied(text: str) -> Iterator[dict[str, Any]]:
    """How full each device is: `GPU 0: 45.2 of 47.5 GiB`, `carte 1 : 3 Mio sur 81 559 Mio`, `GPU 2: 10 GiB free of 24 GiB`.

    Beside such a device a size alone is what another one holds: `gpu1 is at 40 of 45 GB, gpu0 only at 9 GB`.
    """
    if "capacity" in text:
        return
    found = [match for match in _OCCUPIED.finditer(text) if not _NO_USE.search(match["between"])]
    for match in found if any(match["total"] for match in found) else ():
        part, total = _amount(match["part"], match["unit"] or match["whole"]), _amount(match["total"], match["whole"])
        free = match["free"] or match["after"] or re.search(r"\bfree\b", match["between"])
        if part is None or (total is None and (match["total"] or free)) or (total is not None and part > total):
            continue
        used = total - part if free and total is not None else part
        yield {"gpu": int(match["gpu"] or match["before"]), "used_bytes": used, "total_bytes": total}


def _amount(number: str | None, unit: str | None) -> int | None:
    """Bytes of a number in any locale: thousands behind a comma or a blank, a decimal comma, `Mio` of French tools."""
    plain = re.sub(r"[ ,](?=\d{3}(?:\D|$))", "", number or "").replace(",", ".")
    return parse_size(plain + re.sub("[oO]$", "B", unit), binary=True) if plain and unit else None


class Devices:
    """Devices that the text states, in order; a size for all cards is divided once their number is known."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, Any]]] = []

    def line(self, number: int, text: str) -> bool:
        """Whether the line was a statement about devices."""
        everything = _ALL_CARDS.search(text)
        if everything:
            self._share(parse_size(everything["size"], binary=True))
            return True
        one = _ONE_CARD.match(text)
        if one:
            size = parse_size(one["size"], binary=True)
            if self.rows and self.rows[-1][1].get("total_bytes") is None:
                self.rows[-1][1]["total_bytes"] = size
            else:
                self.rows.append((number, {"total_bytes": size, "count": 1}))
            return True
        indexed = _GPU_INDEX.search(text)
        if indexed and not re.search(r"\b(?:has|total capacity|memory in use|free)\b", text):
            row = _device(indexed["value"])
            if row:
                self.rows.append((number, {**row, "gpu": int(indexed["gpu"]), "count": 1}))
            return bool(row)
        keyed = _GPU_KEY.match(text)
        if keyed:
            own = keyed["key"].lower().startswith(("gpu", "card", "graphic", "accel"))
            found = [row for part in _parts(keyed["value"]) if (row := _device(part, own))]
            self.rows += [(number, row) for row in found]
            return bool(found)
        for sentence in re.split(r"(?<=[.;])\s", text):
            row = None if _ELSEWHERE.search(sentence) else _in_prose(sentence)
            if row:
                self.rows.append((number, row))
                break
        return False

    def _share(self, size: int | None) -> None:
        count = sum(row["count"] for _, row in self.rows)
        if size and count and all(row.get("total_bytes") is None for _, row in self.rows):
            for _, row in self.rows:
                row["total_bytes"] = size // count


def _in_prose(text: str) -> dict[str, Any] | None:
    """A device in a sentence: "runs on two H100", "8 x A100", "MIG 1g.10gb of an A100"."""
    for name in _GPU_NAME.finditer(text):
        if _QUERIED.match(text, name.end()):
            return _device(text[name.start() :], True)
        for before in _IN_PROSE.finditer(text, 0, name.end()):
            if before.end() == name.start():
                row = _device(text[before.start() :], True) or {"count": 1}
                mig = MIG.search(text)
                if mig:
                    row["mig_profile"] = mig[0].lower()
                    row.pop("total_bytes", None)
                return row
    return None


def _parts(text: str) -> Iterator[str]:
    """Devices named side by side: `A + B`, `A and B`."""
    yield from (part for part in re.split(r"\s\+\s|;\s|\s(?:and|&)\s(?=\d|an? |one |two |[A-Z])", text) if part.strip())


def _device(text: str, own: bool = False) -> dict[str, Any] | None:
    """One device statement: name, memory, MIG profile, count; `own` accepts a text that names no product."""
    text = HOST_RAM.sub("", text)
    name, mig = _GPU_NAME.search(text), MIG.search(text)
    size = re.search(SIZE, text)
    if not (name or mig or (own and size)):
        plain = re.match(r"[A-Z][\w -]{2,60}", text.strip()) if own else None
        if not plain:
            return None
        return {"name": plain[0].strip(), "count": 1}
    # the number of a product is none of devices: "RTX 4090 (24 GB)"
    counted = re.sub(SIZE, "", text[: name.start()] + "GPU" + text[name.end() :] if name else text)
    times = _TIMES.search(counted) or re.match(rf"(?P<count>{COUNT})\s", counted.strip(), re.I)
    printed = next((group for group in times.groupdict().values() if group), None) if times else None
    row: dict[str, Any] = {"count": 1}
    if printed:
        row["count"] = max(1, NUMBERS.get(printed.lower(), 0) or (int(printed) if printed.isdigit() else 1))
    if name:
        row["name"] = name[0].strip()
    if mig:
        row["mig_profile"] = mig[0].lower()
    elif size:
        # two sizes in cells of their own are what it has and what of it is in use, in whatever order a query names them
        cells = [
            parse_size(cell.strip(), binary=True) or 0 for cell in text.split(",") if re.fullmatch(SIZE, cell.strip())
        ]
        row["total_bytes"] = max(cells) if len(cells) > 1 else parse_size(size[0], binary=True)
        if row["total_bytes"] and re.match(r" (?:together|combined|in total|altogether|in all)\b", text[size.end() :]):
            row["total_bytes"] //= row["count"]
    return row
