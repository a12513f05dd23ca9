"""How good a ranking is, as Markdown: what `oomdoc rules count` prints and docs/method.md shows."""

from __future__ import annotations

from typing import Any

_NAMES = ("fair", "strict", "top3", "category", "brier", "ece")


def render(now: Any, left_out: Any, sharpness: float) -> str:
    """Tables of two `counting.Figures`: the rules as they are, and counted anew without the bundle that is judged."""
    lines = [f"{now.bundles} labelled bundles", "", "| figure | as shipped | left out |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {getattr(now, name):.3f} | {getattr(left_out, name):.3f} |" for name in _NAMES]
    lines += ["", "| first place's probability | bundles | mean | right |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {low:.1f} to {low + 0.1:.1f} | {n} | {mean:.2f} | {right:.2f} |" for low, n, mean, right in left_out.bins
    ]
    lines += ["", f"likeliest sharpness {sharpness:g}"]
    if left_out.confused:
        lines += ["", "| is | said | bundles |", "| --- | --- | ---: |"]
        lines += [f"| {label} | {told} | {times} |" for label, told, times in left_out.confused]
    return "\n".join(lines) + "\n"
