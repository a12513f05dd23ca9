"""What patterns of host events have in common: converters that finish a row of `host_event` or `note`, and sizes as tools print them."""

from __future__ import annotations

import re
from collections.abc import Callable

from oomdoc.ingest.base import TEXT_CAP, Finish, Row
from oomdoc.ingest.record import utc
from oomdoc.intake.cells import MONTHS
from oomdoc.regexes import regex
from oomdoc.units import GIB, MIB, NOMINAL_YEAR, parse_size, parse_time

UNLIMITED = 1 << 60  # the kernel prints page-rounded 2**63 for "no limit"
_HUMAN = regex(r"\s*\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\]")
_AUDIT = regex(
    r"\baudit\((?:(?P<epoch>\d{9,11}\.\d{1,6})|(?P<one>\d\d)/(?P<other>\d\d)/(?P<year>\d\d(?:\d\d)?) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\.(?P<part>\d{1,6})):\d"
)
_QUOTED = regex(
    r"\S[^\n]{0,80}?[:>\"'`(] ?(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) \S{1,80} kernel: "
)
_UPTIME = regex(r"\s*\[ *(\d{1,9}\.\d{1,9})\]")
SIZE = r"(?:\d[\d,]{0,24}(?:\.\d{1,24})?|\.\d{1,24}) ?(?:[kKMGT]i?B?|bytes|B)?"


def boot_free_time(text: str) -> float | None:
    """Epoch seconds of a `dmesg -T` stamp at the head of a line; None for seconds since boot, which have no date.

    >>> boot_free_time("[Thu Nov 19 04:00:01 2026] x"), boot_free_time("[ 4038.131905] x")
    (1795060801.0, None)
    """
    found = _HUMAN.match(text)
    if not found or found[1] not in MONTHS:
        return None
    day, hour, minute, second, year = (int(found[group]) for group in (2, 3, 4, 5, 6))
    return utc(year, MONTHS[found[1]], day, hour, minute, second)


def audit_time(text: str) -> float | None:
    """Epoch seconds of a record of the kernel's audit log, as it is or as `ausearch -i` prints it; None where day and month could be either.

    >>> audit_time("type=ANOM_ABEND msg=audit(1767225600.500:71): pid=1"), audit_time("msg=audit(12/31/2025 08:00:01.250:72): pid=1")
    (1767225600.5, 1767168001.25)
    >>> audit_time("msg=audit(05/06/25 08:00:01.250:72): pid=1") is None
    True
    """
    found = _AUDIT.search(text)
    if found is None or found["epoch"]:
        return float(found["epoch"]) if found else None
    one, other = int(found["one"]), int(found["other"])
    day, month = max(one, other), min(one, other)
    if one != other and day <= 12:
        return None  # the order is the locale's
    midnight = utc(2000 + int(found["year"]) % 100, month, day)
    clock = int(found["hour"]) * 3600 + int(found["minute"]) * 60 + int(found["second"])
    return None if midnight is None else midnight + clock + float(f"0.{found['part']}")


def size_in_bytes(printed: str) -> int | None:
    """Bytes of a printed size; None for what is no size, or as large as no limit at all."""
    size = parse_size(printed, binary=True)
    return None if size is None or size >= UNLIMITED else size


def size_of_df(printed: str) -> str:
    """A size as `df` prints it, with its unit: a bare number is KiB."""
    if printed.isdigit() and int(printed) >= GIB and int(printed) % (64 * MIB) == 0:
        # of `df -B1`: a terabyte of /dev/shm is half of the memory of a host, and no round figure
        return f"{printed} B"
    return printed if printed[-1].isalpha() else f"{printed} kB"


def quoted_time(text: str) -> float | None:
    """Seconds of the nominal year of a line of a kernel log that somebody wrote down behind words of his own; None for any other.

    >>> quoted_time("journalctl -k: Jan 2 03:00:11 n7 kernel: Out of memory"), quoted_time("Jan 2 03:00:11 n7 kernel: Out of memory")
    (946782011.0, None)
    """
    found = _QUOTED.match(text)
    if not found or found["month"] not in MONTHS:
        return None
    day, hour, minute, second = (int(found[name]) for name in ("day", "hour", "minute", "second"))
    return utc(NOMINAL_YEAR, MONTHS[found["month"]], day, hour, minute, second)


def host_event(kind: str, row: Row, match: re.Match[str]) -> Row:
    """The row finished: groups `size…` and `limit…` become bytes, the head of the line `text`, its date or the group `stamp` `t`."""
    for column, prefix in (("bytes", "size"), ("limit_bytes", "limit")):
        for group in [name for name in row if name.startswith(prefix) and name != column]:
            row[column] = size_in_bytes(row.pop(group))
    for group in [name for name in row if name[:-1] in ("process", "device")]:
        row[group[:-1]] = row.pop(group) or row.get(group[:-1])
    row["kind"] = kind
    told = row.pop("stamp", None)
    stamp = parse_time(told) if told else boot_free_time(match.string)
    if stamp is not None:
        row["t"] = stamp
    elif told := audit_time(match.string):
        row["t"] = told
    elif since_boot := _UPTIME.match(match.string):
        row["uptime_s"] = float(since_boot[1])
    elif written := quoted_time(match.string):
        row["t"] = written
    row["text"] = match.string.strip()[:TEXT_CAP]
    return row


def event(kind: str, unless: str | None = None) -> Finish:
    """An event of one kind; none where `unless` is found in the line."""
    other = regex(unless) if unless else None

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        return None if other and other.search(match.string) else host_event(kind, row, match)

    return Finish("host_event", {"kind": kind}, convert)


def _printed(match: re.Match[str]) -> int | None:
    printed = [text for name, text in match.groupdict().items() if text and name.startswith(("size", "limit"))]
    return size_in_bytes(printed[0]) if printed else None


def fact(topic: str, value_of: Callable[[re.Match[str]], int | None] = _printed, must: bool = False) -> Finish:
    """A `note` of one topic; its value in bytes is a group `size…` or `limit…`, or what `value_of` makes of the line (`must`: else no row)."""

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        value = value_of(match)
        return None if must and value is None else {"topic": topic, "value": value, "text": match.string.strip()[:300]}

    return Finish("note", {"topic": topic}, convert)
