"""Measures whole processes on a generated bundle and prints ratios against standard tools beside the bars.

    python bench.py --size 256M --bars 1,2,4,5,6,8 [--json FILE] [--keep DIR] [--strict]

CPU is user and system time of the child; figures are medians of runs in turn, since the machine may be shared. First the
evidence is compared with what the generator put in: a fast wrong answer is worth nothing (exit 1).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from make_bundle import MIB, QUERIES, parse_size

PYTHON = sys.executable
OOMDOC = (PYTHON, "-m", "oomdoc")
INFLATE = "import sys; from isal import igzip\nwith igzip.open(sys.argv[1]) as f:\n while f.read(1 << 20): pass"
ANCHORS = "from oomdoc.ingest.text_log import Reader; from oomdoc.scan import chunks; scan = Reader().plan.scan\n"
SEARCH = (
    ANCHORS + "import sys; print(sum(1 for p in sys.argv[1:] for c in chunks(open(p, 'rb')) for _ in scan.hits(c)))"
)
PRINT = ANCHORS + "print(*(a.decode() for a in scan.anchors), sep='\\n')"


class Cost(NamedTuple):
    """What a child process took: seconds, seconds, bytes."""

    wall: float
    cpu: float
    peak: int


def cost(command: Sequence[str | Path], out: Path | None) -> Cost:
    """Run a command; its output goes to a file, since grep stops at the first hit when it writes to /dev/null."""
    with Path(out or os.devnull).open("wb") as sink:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=sink)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"bench: {command} ended with {child.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def in_turn(commands: dict[str, Sequence[str | Path]], runs: int, out: Path | None = None) -> dict[str, Cost]:
    """Medians of A B C A B C ..."""
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            taken[name].append(cost(command, out))
    return {name: Cost(*map(statistics.median, zip(*costs, strict=True))) for name, costs in taken.items()}


def differences(folder: Path) -> list[str]:
    """Analyze FOLDER/bundle.tar.gz and say where the evidence is not what was put in."""
    import duckdb

    truth = json.loads((folder / "truth.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        tables = Path(scratch, "evidence.duckdb")
        cost((*OOMDOC, "analyze", "-q", folder / "bundle.tar.gz", "--db", tables), Path(scratch, "report.txt"))
        with duckdb.connect(tables, read_only=True) as db:
            found = {name: list(db.execute(query).fetchone() or ()) for name, query in QUERIES.items()}
    return [f"{name}: {found[name]} instead of {truth[name]}" for name in QUERIES if found[name] != truth[name]]


class Bench:
    """The measurements on the bundles of one folder; `rows` is the table."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size, self.rows = folder, size, list[dict[str, Any]]()
        self.runs = 1 if size >= 1 << 30 else 3
        self.report = ("--format", "json", "-q", "-o", folder / "report.json")
        # as where it is installed: bytecode is written once, and the first run, which does so, is not counted
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder.absolute() / "bytecode")
        cost((*OOMDOC, "analyze", self.bundle(MIB) / "bundle.tar.gz", *self.report), None)

    def bundle(self, size: int) -> Path:
        """The folder of the bundle of a size; made in another process, because a child's peak begins with its parent's."""
        place = self.folder / str(size)
        if not (place / "truth.json").exists():
            subprocess.run((PYTHON, Path(__file__).with_name("make_bundle.py"), place, "--size", str(size)), check=True)
        return place

    def row(self, bar: int, what: str, figure: float, must: float, aim: float, most: bool = True) -> None:
        """A line of the table; `most` says whether the limits are the most or the least that is allowed."""
        ok = figure <= must if most else figure >= must
        self.rows.append({"bar": bar, "what": what, "figure": round(figure, 2), "must": must, "aim": aim, "ok": ok})

    def whole(self) -> None:
        """Bars 1, 2, 5 and 6: the whole analysis."""
        full, quarter = (self.bundle(size) / "bundle.tar.gz" for size in (self.size, self.size // 4))
        fast = ("igzip", "-dc") if shutil.which("igzip") else (PYTHON, "-c", INFLATE)
        commands = {
            "full": (*OOMDOC, "analyze", full, *self.report),
            "part": (*OOMDOC, "analyze", quarter, *self.report),
        }
        taken = in_turn({**commands, "gzip": ("gzip", "-dc", full), "fast": (*fast, full)}, self.runs)
        ours, part = taken["full"], taken["part"]
        self.row(1, "analyze, wall / gzip -dc", ours.wall / taken["gzip"].wall, 0.75, 0.5)
        tool = "igzip -dc" if fast[0] == "igzip" else "a reader with isal"
        self.row(2, f"analyze, CPU / {tool}", ours.cpu / taken["fast"].cpu, 5, 3.3)
        self.row(5, "peak memory, MiB", ours.peak / MIB, 320, 256)
        self.row(5, "peak memory at a quarter of the size, MiB", part.peak / MIB, 320, 256)
        if self.size >= 4 << 30:
            self.row(5, "growth of the peak from a quarter, MiB", (ours.peak - part.peak) / MIB, 64, 32)
        self.row(6, "analyze, CPU / at a quarter of the size", ours.cpu / part.cpu, 4.5, 4.2)

    def search(self) -> None:
        """Bar 4: all anchors in the server logs."""
        logs = sorted((self.bundle(self.size) / "bundle/server").iterdir())
        anchors, hits = self.folder / "anchors.txt", self.folder / "hits.txt"
        cost((PYTHON, "-c", PRINT), anchors)
        tool = ("rg", "-j1", "-a", "-c", "-F", "-f") if shutil.which("rg") else ("grep", "-a", "-c", "-F", "-f")
        taken = in_turn({"ours": (PYTHON, "-c", SEARCH, *logs), "tool": (*tool, anchors, *logs)}, self.runs, hits)
        self.row(
            4, f"search, CPU of {' '.join(tool)} / ours", taken["tool"].cpu / taken["ours"].cpu, 2, 2.5, most=False
        )

    def small(self) -> None:
        """Bar 8: start-up."""
        archive = self.bundle(MIB) / "bundle.tar.gz"
        commands = {"--version": (*OOMDOC, "--version"), "--help": (*OOMDOC, "--help")}
        commands["analyze of 1 MB"] = (*OOMDOC, "analyze", archive, *self.report)
        taken = in_turn({"pass": (PYTHON, "-c", "pass"), **commands}, 7)
        for name, must, aim in zip(commands, (3, 15, 40), (2, 6, 15), strict=True):
            self.row(8, f"{name}, CPU / python -c pass", taken[name].cpu / taken["pass"].cpu, must, aim)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure oomdoc on a generated bundle.")
    parser.add_argument("--size", type=parse_size, default="256M", help="bytes of content, e.g. 64M, 1G")
    parser.add_argument("--bars", default="1,2,4,5,6,8")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the bundles here and use them again")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="oomdoc-bench-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, options.size)
        bars = {int(bar) for bar in options.bars.split(",")}
        for needed, measure in (({1, 2, 5, 6}, bench.whole), ({4}, bench.search), ({8}, bench.small)):
            if bars & needed:
                measure()
        wrong = differences(bench.bundle(options.size))
    rows = sorted((row for row in bench.rows if row["bar"] in bars), key=lambda row: row["bar"])
    print(f"{options.size >> 20} MiB of content, evidence {'WRONG' if wrong else 'as generated'}\n")
    print(f"bar  {'what':52} {'figure':>8} {'must':>6} {'aim':>6}")
    for row in rows:
        said = "ok" if row["ok"] else "MISSED"
        print(f"{row['bar']:>3}  {row['what']:52} {row['figure']:8.2f} {row['must']:6} {row['aim']:6}  {said}")
    if options.json:
        options.json.write_text(json.dumps({"size": options.size, "wrong": wrong, "rows": rows}, indent=1) + "\n")
    for line in wrong:
        print("bench:", line, file=sys.stderr)
    return int(bool(wrong) or (options.strict and not all(row["ok"] for row in rows)))


if __name__ == "__main__":
    sys.exit(main())
