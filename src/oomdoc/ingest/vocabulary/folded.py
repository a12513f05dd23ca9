"""Names that carry a statistic or a window: `kv_usage_p95_5m`, `avg_waiting`, `running (max)`, `waiting, last 5 min`, `rate(x[5m])`.

The vocabulary knows the name of the quantity alone; what stands around it is taken off here, and nowhere else, and what becomes of it
is decided here (`booked`):

    a gauge         its average, median, percentile, largest or last value over a window is a reading of that gauge; of what is left
                    (free memory) the smallest, which is the moment at which most was in use
    a sum of it     over replicas, where things are counted; a sum of shares is none
    a counter       its last or largest value is that counter; its rate is the rate that the vocabulary has, if it has one; what it
                    grew by within a window is neither
    anything else   no row: the percentile of a latency is no request

What is not booked stays a column that nobody understood, and a problem names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.ingest.vocabulary.words import word_set
from oomdoc.regexes import regex


class Folded(NamedTuple):
    """A name without its statistic and its window; `apart` says that brackets or a function set them off."""

    bare: str
    how: str  # avg, median, p95, max, min, last, sum, rate, growth; "" = a window alone
    window: str
    apart: bool

    @property
    def told(self) -> str:
        """What was taken off, in words."""
        return " ".join(part for part in (self.how, self.window and f"over {self.window}") if part)


_HOW = {
    "avg": "avg", "average": "avg", "mean": "avg", "median": "median", "max": "max", "maximum": "max", "min": "min", "minimum": "min",
    "last": "last", "latest": "last", "current": "last", "cur": "last", "end": "last", "sum": "sum", "increase": "growth", "delta": "growth",
}  # fmt: skip
_APART = dict.fromkeys(("total", "all", "fleet"), "sum")
"""Words for a sum in brackets alone: `preemptions_total` is a counter's own name."""
_BEFORE = {word: how for word, how in _HOW.items() if how in ("avg", "median", "last")}
"""What may stand before a name: `max_running_requests` and `min_replicas` are limits."""
_AROUND = word_set("over in the last past of for during rolling trailing window at")
_TIMES = word_set("s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days")
_TOKEN = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:\.\d+)?")
_UNIT = regex(r"(?i)[ _.]?[ _.(\[](?:pct|percent|perc|ratio|[kmgt]i?b|bytes)[)\]]?$|[ _]?\(?%\)?$")
_BY = r"(?:\s*(?:by|without)\s*\([^()]{0,200}\)\s*)?"
_FUNCTION = regex(
    rf"(?:(?P<outer>sum|max|min|avg){_BY}\(\s*)?(?:(?P<inner>i?rate|increase|delta|(?:avg|max|min|last|sum)_over_time)\(\s*)?"
    rf"(?P<bare>[A-Za-z_:][\w:]{{2,100}}(?:\{{[^{{}}]{{0,400}}\}})?)(?:\[(?P<window>\d{{1,3}}[smhd])[\w:]{{0,12}}\])?\s*\){{1,2}}{_BY}"
)


def unfolded(name: str) -> Iterator[Folded]:
    """What a name can be without its statistic and its window, the longer rest first: a hit rate is no rate of hits.

    >>> [tuple(one) for name in ("kv_usage_p95_5m", "avg_waiting", "running (max)", "rate(x_total[5m])") for one in unfolded(name)]
    [('kv_usage', 'p95', '5m', False), ('waiting', 'avg', '', False), ('running', 'max', '', True), ('x_total', 'rate', '5m', True)]
    >>> [one[:3] for one in unfolded("tokens_rate1h_pct")], list(unfolded("max_num_seqs"))
    ([('tokens_rate_pct', '', '1h'), ('tokens_pct', 'rate', '1h')], [])
    """
    if (found := _FUNCTION.fullmatch(name)) and (found["outer"] or found["inner"]):
        how = (found["inner"] or found["outer"]).removesuffix("_over_time")
        yield Folded(found["bare"], "rate" if how.endswith("rate") else _HOW[how], found["window"] or "", True)
        return
    unit = found[0] if (found := _UNIT.search(name)) else ""
    plain = name.removesuffix(unit)
    tokens = list(_TOKEN.finditer(plain))
    opened = max(plain.rfind("("), plain.rfind("[")) if plain.endswith((")", "]")) else len(plain)
    words = [_APART.get(token[0].lower(), token[0].lower()) if token.start() > opened else token[0].lower() for token in tokens]  # fmt: skip
    taken, how, window = _taken(words[::-1], _HOW, behind=True)
    if taken:
        end = tokens[-taken - 1].end()
        yield Folded(plain[:end] + unit, how, window, plain[end:].lstrip()[:1] in ("(", "["))
    elif (front := _taken(words, _BEFORE, behind=False))[0]:
        yield Folded(plain[tokens[front[0]].start() :] + unit, *front[1:], False)
    rest = len(words) - taken
    if not how and rest > 1 and words[rest - 1] in ("rate", "irate"):
        yield Folded(plain[: tokens[rest - 2].end()] + unit, "rate", window, False)


def _taken(words: Sequence[str], known: Mapping[str, str], behind: bool) -> tuple[int, str, str]:
    """How many words from one end on are a statistic and a window, and which; `behind`: the words stand the other way round."""
    at, how, window = 0, "", ""
    while at < len(words) - 1:
        first, second = words[at : at + 2][:: -1 if behind else 1]
        if not window and first.isdigit() and second in _TIMES:
            at, window = at + 2, first + second
        elif not how and first == "p" and second.replace(".", "").isdigit():
            at, how = at + 2, first + second
        elif words[at] in _AROUND and (window or how or not behind):
            at += 1
        elif words[at : at + 2] == ["time", "over"]:  # `max_over_time`
            at += 2
        elif words[at] in known and how in ("", known[words[at]]):
            at, how = at + 1, known[words[at]]
        else:
            break
    return (at, how, window) if at < len(words) and (how or window) else (0, "", "")


_RATES = {"metric.prompt_tokens_total": "stat.prompt_rate", "metric.generation_tokens_total": "stat.generation_rate"}
"""Counters whose rate has a column of its own."""
_GAUGES = word_set("gpu.used gpu.share gpu.util gpu.free")


def booked(quantity: Quantity, folded: Folded) -> str:
    """The id of the quantity that a statistic of this one is booked as; "" where it is none of ours."""
    how = folded.how
    if quantity.counter:
        same = how in ("sum", "max", "last") and not (how == "sum" and folded.window)
        return quantity.id if same else _RATES.get(quantity.id, "") if how == "rate" else ""
    if quantity.kind in ("text", "moment") or not (
        quantity.table in ("engine_stat", "metric") or quantity.id in _GAUGES
    ):
        return ""
    if how in ("rate", "growth") or (how == "sum" and quantity.kind not in ("count", "number")):
        return ""
    left = quantity.id == "gpu.free"
    if (how == "min") != left and how[:1] in ("m", "p") and how != "median":
        return ""
    return quantity.id
