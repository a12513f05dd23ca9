"""The verdict of labelled cases whose evidence is told in another form: the first cause has to stay.

`forms.py` and `reshaped.py` ask whether the quantities of a source come back, `shapes.py` whether a bundle's envelope changes anything.
Here the evidence itself is told otherwise, as other tools, collectors and people would hand over the same, and what counts is the verdict:

    tables      each table of a bundle behind semicolons, as Markdown, as JSON lines, as a list of objects, in aligned columns
    names       the columns of each table under names that other tools have for the same
    envelopes   each log as docker, containerd, journald and Loki keep it
    one line    each text in one line, its line ends spelled out as `\\n`, as a log service hands on a long message

`python tests/retold.py FOLDER` tells every N-th case below a folder (`--every`) in each way and prints the share of first causes that
stay, way by way, and each that does not. A case counts where its own verdict is more than a guess.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import forms
import reshaped
import shapes
from shapes import Files, Told

LEAST = 0.3
"""Probability below which a first place is a guess between priors."""

NAMES: tuple[tuple[str, str], ...] = (
    # as nvidia-smi, exporters and gateways print a column, and as gpustat, Telegraf, SDKs and people do
    ("memory.used [MiB]", "fb_used_mib"), ("memory.total [MiB]", "fb_total_mib"), ("memory.free [MiB]", "fb_free_mib"), ("utilization.gpu [%]", "gpu_util_pct"),
    ("utilization.memory [%]", "mem_util_pct"), ("index", "gpu_index"), ("timestamp", "time"), ("ts", "timestamp"), ("time", "ts"), ("gpu", "gpu_index"),
    ("prompt_tokens", "input_tokens"), ("input_tokens", "prompt_tokens"), ("completion_tokens", "output_tokens"), ("output_tokens", "completion_tokens"),
    ("latency_ms", "e2e_latency_ms"), ("latency_s", "duration_s"), ("ttft_ms", "time_to_first_token_ms"), ("ttft_s", "first_token_latency_s"), ("status", "http_status"),
    ("rss_mib", "resident_memory_mib"), ("rss_gib", "resident_gib"), ("rss_mb", "resident_mb"), ("rss_bytes", "resident_bytes"), ("memory_used_mib", "used_memory_mib"), ("mem_used_mib", "memory_used_mib"),
    ("running", "num_running"), ("waiting", "num_waiting"), ("kv_usage", "kv_cache_usage"), ("kv_used", "kv_cache_used"), ("num_requests_running", "running_requests"),
    ("num_requests_waiting", "waiting_requests"), ("preemptions", "preemption_count"), ("replicas", "current_replicas"), ("cached_tokens", "prefix_cached_tokens"),
)  # fmt: skip


def _tables(write: forms.Form) -> Callable[[Files], Files]:
    """Every file that is one table, written again; all others as they are."""

    def tell(files: Files) -> Files:
        return {path: _written(path, data, write) for path, data in files.items()}

    return tell


def _sheet(path: str, data: bytes) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows of a file that is one table, and no log; a row without a figure is the header of another table."""
    if shapes.is_log(path, data):
        return None
    try:
        found = reshaped.sheet(data.decode()) if len(data) < 1 << 20 else None
    except (UnicodeDecodeError, StopIteration):
        return None
    return found if found and all(any(map(str.isdigit, "".join(row))) for row in found[1]) else None


def _written(path: str, data: bytes, write: forms.Form) -> bytes:
    found = _sheet(path, data)
    if found is None:
        return data
    header, rows = found
    return write(header, [[cell or None for cell in row] for row in rows]).encode()


def _renamed(files: Files) -> Files:
    """Every table under other names for its columns."""
    names = dict(NAMES)
    told = {}
    for path, data in files.items():
        found = _sheet(path, data)
        if found is None:
            told[path] = data
            continue
        header, rows = found
        other = [names.get(name, name) for name in header]
        other = header if len(set(other)) < len(other) else other
        told[path] = reshaped.SHEET_FORMS["comma"](other, [[cell or None for cell in row] for row in rows]).encode()
    return told


def _one_line(files: Files) -> Files:
    """Every log in one line: a long message of a log service."""
    return {
        path: data.rstrip(b"\n").replace(b"\n", b"\\n") + b"\n" if shapes.is_log(path, data) and len(data) < 200_000 else data
        for path, data in files.items()
    }  # fmt: skip


WAYS: dict[str, Callable[[Files], Files]] = {
    **{f"table-{name}": _tables(reshaped.SHEET_FORMS[name]) for name in ("semicolon", "markdown", "json-lines", "json-array", "aligned")},
    "table-renamed": _renamed,
    **{f"log-{name}": shapes.enveloped(name) for name in ("docker-json", "cri", "journal-json", "journal-short-iso", "loki-jsonl")},
    "log-one-line": _one_line,
}  # fmt: skip


class Tried(NamedTuple):
    """A case that was told in a way: its verdict before and after."""

    case: str
    way: str
    before: Told
    after: Told

    @property
    def stays(self) -> bool:
        """Whether the first cause is the same."""
        return self.before.cause == self.after.cause


def tried(folder: Path, ways: tuple[str, ...] = tuple(WAYS)) -> Iterator[Tried]:
    """The case in each way that changes any of its files; nothing where its own verdict is a guess."""
    files = shapes.files_of(folder)
    before: Told | None = None
    for way in ways:
        other = WAYS[way](files)
        if other == files:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            if before is None:
                before = shapes.told(shapes.laid_out(Path(scratch) / "plain", files))
                if before.probability < LEAST:
                    return
            yield Tried(folder.name, way, before, shapes.told(shapes.laid_out(Path(scratch) / "other", other)))


def main(argv: list[str]) -> int:
    """The share of first causes that stay; the exit status is 1 below 0.95."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=1, help="each N-th case only")
    parser.add_argument("--first", type=int, default=0, help="the place of the first case")
    parser.add_argument("--way", action="append", choices=tuple(WAYS), help="these ways (default: all)")
    chosen = parser.parse_args(argv)
    folders = sorted({path.parent for root in chosen.cases for path in root.rglob("case.toml")})[
        chosen.first :: chosen.every
    ]
    total: Counter[str] = Counter()
    stay: Counter[str] = Counter()
    for folder in folders:
        for one in tried(folder, tuple(chosen.way or WAYS)):
            total[one.way] += 1
            stay[one.way] += one.stays
            if not one.stays:
                print(f"{one.case} {one.way}: {one.before.cause} {one.before.probability:.2f} -> {one.after.cause} {one.after.probability:.2f}", flush=True)  # fmt: skip
    for way in sorted(total):
        print(f"{way:24} {stay[way] / total[way]:.3f} of {total[way]:5}")
    whole = stay.total() / max(1, total.total())
    print(f"{'all':24} {whole:.3f} of {total.total():5}")
    return 0 if whole >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
