"""Bytes, tokens, times and shares: how they are read and how they are written.

The bottom of the house. GiB is 2**30 and GB is 10**9, and what is printed always says which. Old engines and old torch
print `GB` and mean 2**30: the pattern that reads them says so, never this module.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence

from oomdoc.regexes import regex

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

_FACTORS: dict[str, int] = {
    "": 1, "b": 1, "byte": 1, "bytes": 1,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB, "ki": KIB, "mi": MIB, "gi": GIB, "ti": TIB,
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
_SIZE = regex(
    r"\s{0,99}(-?(?:\d[\d,]{0,24}(?:\.\d{1,24})?|\.\d{1,24})(?:[eE][+-]?\d{1,3})?)\s{0,99}([A-Za-z]{0,9})\s{0,99}"
)

UNKNOWN_SIZE = (1 << 64) - 1  # torch prints this sentinel (17179869184.00 GiB) where NVML cannot tell


NOMINAL_YEAR = 2000  # a leap year long before any engine: stamps still in it (or the next two) have no known year


def parse_size(text: str, *, binary: bool = False, unit: str = "") -> int | None:
    """Bytes of a printed size such as `3.02 GiB`, `64Gi`, `286.31 MiB`, `1,024`; None where it is no size.

    `binary` reads `KB MB GB` as powers of 1024 (old vLLM, torch tables, dmon, kernel kB). `unit` is used where the text
    has none. The sentinel that torch prints for "unknown", and what is larger, give None.

    >>> parse_size("1.50 GiB"), parse_size("64Gi"), parse_size("2 GB"), parse_size("2 GB", binary=True)
    (1610612736, 68719476736, 2000000000, 2147483648)
    """
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    word = (match[2] or unit).lower()
    if binary and len(word) == 2 and word[0] in "kmgt" and word[1] == "b":
        word = word[0] + "ib"
    elif binary and word in ("k", "m", "g", "t"):
        word += "ib"
    factor = _FACTORS.get(word)
    if factor is None:
        return None
    size = float(match[1].replace(",", "")) * factor
    return None if abs(size) >= UNKNOWN_SIZE - GIB else round(size)


def show_bytes(count: float | None) -> str:
    """A size for people, always binary: `39.48 GiB`, `286.3 MiB`, `512 B`; `unknown` for None.

    >>> show_bytes(1610612736), show_bytes(300_000_000), show_bytes(-GIB), show_bytes(None)
    ('1.50 GiB', '286.1 MiB', '-1.00 GiB', 'unknown')
    """
    if count is None:
        return "unknown"
    size = abs(count)
    if size >= GIB:
        return f"{count / GIB:.2f} GiB"
    if size >= MIB:
        return f"{count / MIB:.1f} MiB"
    if size >= KIB:
        return f"{count / KIB:.1f} KiB"
    return f"{count:.0f} B"


def show_time(epoch_s: float | None) -> str | None:
    """UTC ISO 8601 with milliseconds only where there are any; None stays None; `--MM-DD...` where the year is not known.

    >>> show_time(0.0), show_time(1.5), show_time(946684800.0)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500Z', '--01-01T00:00:00Z')
    """
    if epoch_s is None:
        return None
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=round(epoch_s * 1000))
    form = moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    if NOMINAL_YEAR <= moment.year < NOMINAL_YEAR + 3:
        form = "-" + form[4:]
    return form.replace("+00:00", "Z")


def show_seconds(seconds: float | None) -> str:
    """A duration for people: `43 s`, `5 min 12 s`, `10 min`, `3 h 20 min`, and from two days on `5 d 15 h`.

    >>> show_seconds(43), show_seconds(312), show_seconds(600), show_seconds(12000), show_seconds(488400), show_seconds(None)
    ('43 s', '5 min 12 s', '10 min', '3 h 20 min', '5 d 16 h', 'unknown')
    """
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    if whole < 100:
        return f"{seconds:.1f} s" if seconds < 10 and seconds != whole else f"{whole} s"
    if whole < 6000:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    if whole < 48 * 3600:
        return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")
    hours = round(whole / 3600)
    return f"{hours // 24} d" + (f" {hours % 24} h" if hours % 24 else "")


def zone(name: str) -> dt.tzinfo | None:
    """The time zone of `+02:00`, `UTC` or `Europe/Berlin`; None where there is none of that name.

    >>> zone("+02:00"), zone("nowhere")
    (datetime.timezone(datetime.timedelta(seconds=7200)), None)
    """
    import zoneinfo  # only here: it costs as much as the rest of this module

    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return dt.timezone(dt.timedelta(minutes=-minutes if offset[1] == "-" else minutes)) if minutes < 1440 else None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


_AGE = regex(r"(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?")


def parse_age(text: str) -> float | None:
    """Seconds of a Kubernetes age such as `5m12s`, `2d4h`, `42s`; None for `<unknown>` and the like.

    >>> parse_age("5m12s"), parse_age("2d4h"), parse_age("<unknown>")
    (312.0, 187200.0, None)
    """
    match = _AGE.fullmatch(text.strip())
    if not match or not any(match.groups()):
        return None
    years, days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return float((((years * 365 + days) * 24 + hours) * 60 + minutes) * 60 + seconds)


_STAMP = regex(r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|[+-]\d\d:?\d\d)?")


def parse_time(text: str) -> float | None:
    """Epoch seconds of an ISO-like stamp anywhere in the text (UTC where it names no zone); None where there is none.

    >>> parse_time("2026-11-20T20:04:51.500Z"), parse_time("2026/11/20 20:04:51 +0100"), parse_time("2026-11-20 20:04"), parse_time("noon")
    (1795205091.5, 1795201491.0, 1795205040.0, None)
    """
    match = _STAMP.search(text)
    if not match:
        return None
    try:
        moment = dt.datetime(*(int(part or 0) for part in match.groups()[:6]), tzinfo=dt.UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    fraction = int((match[7] or "0").ljust(9, "0")) / 1e9
    zone = match[8]
    offset = 0
    if zone and zone != "Z":
        offset = (1 if zone[0] == "+" else -1) * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    return moment.timestamp() + fraction - offset


def epoch_of(value: object) -> float | None:
    """Epoch seconds of a number that counts seconds, milli-, micro- or nanoseconds since 1970 (or prints one), by its size.

    Collectors differ in the unit and none names it. None for what lies before 2001 in every unit, and for no number.

    >>> epoch_of(1795205091.5), epoch_of("1795205091500"), epoch_of("1795205091500000000"), epoch_of(12), epoch_of("soon")
    (1795205091.5, 1795205091.5, 1795205091.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and not re.fullmatch(r"\d{10,19}(?:\.\d{1,9})?", value):
        return None
    number = float(value)
    for factor in (1.0, 1e3, 1e6, 1e9):
        if 1e9 <= number / factor < 1e10:
            return number / factor
    return None


def likelihood(probability: float) -> str:
    """A probability in words.

    >>> likelihood(0.93), likelihood(0.6), likelihood(0.1)
    ('very likely', 'more likely than not', 'unlikely')
    """
    for least, words in (
        (0.98, "almost certain"),
        (0.9, "very likely"),
        (0.7, "likely"),
        (0.5, "more likely than not"),
    ):
        if probability >= least:
            return words
    return "possible" if probability >= 0.2 else "unlikely"


def percent(share: float | None) -> str:
    """A share of 0..1 for people; never rounded to certainty.

    >>> percent(0.93), percent(0.9996), percent(0.0004), percent(1.0), percent(0.0), percent(None)
    ('93%', '>99%', '<1%', '100%', '0%', 'unknown')
    """
    if share is None:
        return "unknown"
    if 0.99 < share < 1 and share > 0.9949:
        return ">99%"
    if 0 < share < 0.005:
        return "<1%"
    return f"{share:.0%}"


def factor(weight: float) -> str:
    """What a weight in log-odds does to the odds: `×16` for, `÷2.1` against, `=` where it adds nothing.

    >>> factor(2.74), factor(-0.742), factor(0.0), factor(20.0)
    ('×15', '÷2.1', '=', '×1000+')
    """
    size = math.exp(min(abs(weight), 50.0))
    if size < 1.005:
        return "="
    number = "1000+" if size >= 1000 else f"{size:.0f}" if size >= 9.95 else f"{size:.1f}"
    return ("×" if weight > 0 else "÷") + number


def written(begin: float, factors: Sequence[float], end: float) -> tuple[str, tuple[str, ...]]:
    """A share and factors of its odds with as many digits as whoever multiplies them needs to come to `end`, in whole percent.

    >>> written(0.0549, [7.44, 2.3, 1.76], 0.636), written(0.03, [134.2, 21.4], 0.989)
    (('5.5%', ('×7.44', '×2.30', '×1.76')), ('3%', ('×134', '×21')))
    """
    for digits in range(_MOST_DIGITS):
        shown = f"{begin:.{digits}%}" if begin >= 0.005 or digits else percent(begin)
        figures = [_sized(odds, digits) for odds in factors]
        odds = float(shown.strip("<>%")) / 100
        odds /= max(1 - odds, 1e-9)
        for factor_of, figure in zip(factors, figures, strict=True):
            odds *= figure if factor_of >= 1 else 1 / figure
        if percent(odds / (1 + odds)) == percent(end):
            break
    return shown, tuple(
        "=" if figure == 1 else f"{'×' if odds > 1 else '÷'}{figure:{_digits(figure, digits)}}"
        for odds, figure in zip(factors, figures, strict=True)
    )


_MOST_DIGITS = 4


def _digits(size: float, more: int) -> str:
    return f".{more}f" if size >= 9.95 else f".{more + 1}f"


def _sized(odds: float, more: int) -> float:
    """A factor or what divides, rounded as it is written."""
    size = max(odds, 1 / odds) if odds > 0 else math.inf
    size = min(size, math.exp(50.0))
    return 1.0 if size < 1.005 else float(f"{size:{_digits(size, more)}}")


def count(number: float | int | None, noun: str = "", plural: str = "") -> str:
    """`1 request`, `18,234 requests`; `unknown` for None.

    >>> count(1, "request"), count(18234, "request"), count(2, "entry", "entries"), count(7)
    ('1 request', '18,234 requests', '2 entries', '7')
    """
    if number is None:
        return "unknown"
    figure = f"{number:,.0f}"
    if not noun:
        return figure
    return f"{figure} {noun if number == 1 else plural or noun + 's'}"


def show_moment(time: float | str | None) -> str:
    """A time for people: UTC ISO 8601 from epoch seconds, text as it is; a year that no log told is left out.

    >>> show_moment(1795205091.0), show_moment(974750400.0), show_moment("--11-20T20:00:00Z"), show_moment(None)
    ('2026-11-20T20:04:51Z', '11-20 20:00:00 (year unknown)', '11-20 20:00:00 (year unknown)', 'time unknown')
    """
    shown = time if isinstance(time, str) else show_time(time)
    if shown is None:
        return "time unknown"
    return f"{shown[2:].rstrip('Z').replace('T', ' ')} (year unknown)" if shown.startswith("--") else shown
