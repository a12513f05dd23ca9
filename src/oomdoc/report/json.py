"""The report as one JSON object: what `oomdoc schema` describes, in the order of the model, as UTF-8."""

from __future__ import annotations

import io
import json
import re
from typing import Any

from oomdoc.model import Report

_FIGURES = re.compile(r"\[\n\s+(?:(?:-?[\d.]+(?:e[-+]?\d+)?|null),\n\s+)+(?:-?[\d.]+(?:e[-+]?\d+)?|null)\n\s+\]")


def render(report: Report, *, compact: bool = False, **_: Any) -> str:
    """The object of the contract; `compact` puts it on one line. A NaN or infinity is a bug and raises ValueError."""
    return dump(report.to_dict(), compact=compact)


def plain(value: Any) -> Any:
    """Numbers as the report writes them: six decimals, so that the last bits of arithmetic are nobody's finding."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) < 0.1 else round(value, 6)
    return value


def dump(value: Any, *, compact: bool = False) -> str:
    """JSON text that any UTF-8 stream takes: half surrogates (undecodable file names) stay written as escapes."""
    encoder = json.JSONEncoder(
        ensure_ascii=False,
        allow_nan=False,
        indent=None if compact else 2,
        separators=(",", ":") if compact else None,
    )
    out = io.StringIO()  # `dumps` holds every piece by itself, 15 times the text: a bundle may have 100,000 members
    for piece in encoder.iterencode(value):
        out.write(piece)
    text = out.getvalue()
    if not compact:  # a series of hundreds of figures is one line; a text never holds a bare line break
        text = _FIGURES.sub(lambda match: re.sub(r"\n\s+", " ", match[0]).replace("[ ", "[").replace(" ]", "]"), text)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"
