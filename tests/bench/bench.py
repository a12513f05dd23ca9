"""Measures whole processes on a generated bundle and prints ratios against standard tools beside the bars.

    python bench.py --size 256M [--bars 1,2,8] [--json FILE] [--keep DIR] [--strict]

CPU is user and system time of the child; figures are medians of runs in turn, since the machine may be shared. First the
evidence is compared with what the generator put in: a fast wrong answer is worth nothing (exit 1).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from make_bundle import MIB, QUERIES, WORST, parse_size, write

PYTHON = sys.executable
OOMDOC = (PYTHON, "-m", "oomdoc")
INFLATE = "import sys; from isal import igzip\nwith igzip.open(sys.argv[1]) as f:\n while f.read(1 << 20): pass"
ANCHORS = (
    "from oomdoc.ingest.text_log import Reader; from oomdoc.intake.scan import chunks; scan = Reader().plan.scan\n"
)
SEARCH = (
    ANCHORS + "import sys; print(sum(1 for p in sys.argv[1:] for c in chunks(open(p, 'rb')) for _ in scan.hits(c)))"
)
PRINT = ANCHORS + "print(*(a.decode() for a in scan.anchors), sep='\\n')"


PAIRS = (  # what a careful person would write: every pair split, sums and the largest of each number
    '{for (i = 1; i <= NF; i++) {at = index($i, "="); if (at) {key = substr($i, 1, at - 1); value = substr($i, at + 1);'
    " n[key]++; sum[key] += value; if (value + 0 > most[key]) most[key] = value + 0}}}"
    " END {for (key in n) print key, n[key], sum[key], most[key]}"
)
FLEET = Path(__file__).parents[1] / "fleet" / "make_fleet.py"
FLEET_BUNDLES = 240  # of fewer the start of the second night is more than a hundredth


PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Processes that a child leaves behind become ours, with what they took: the workers of a sweep have a parent of their own
    that the sweep does not wait for. Only Linux can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Cost(NamedTuple):
    """What a child process took: seconds, seconds, bytes."""

    wall: float
    cpu: float
    peak: int


class EndedError(Exception):
    """A measured command failed: its bars are missed, the others are measured all the same."""


def cost(command: Sequence[str | Path], out: Path | None) -> Cost:
    """Run a command; its output goes to a file, since grep stops at the first hit when it writes to /dev/null."""
    with Path(out or os.devnull).open("wb") as sink:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=sink)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
    cpu = usage.ru_utime + usage.ru_stime
    with suppress(ChildProcessError):  # what it left behind, until there is nothing more
        while True:
            _, _, left = os.wait4(-1, 0)
            cpu += left.ru_utime + left.ru_stime
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise EndedError(f"{' '.join(map(str, command))} ended with {child.returncode}")
    return Cost(wall, cpu, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


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
        # not by `cost`, which waits for whatever its process has adopted: a test's process has children of its own
        command = (*OOMDOC, "analyze", "-q", folder / "bundle.tar.gz", "--db", tables)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
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
        cost(self.analyze(self.bundle(MIB) / "bundle.tar.gz"), None)

    def analyze(self, *paths: Path) -> Sequence[str | Path]:
        """The command."""
        return (*OOMDOC, "analyze", *paths, *self.report)

    def bundle(self, size: int, seed: int = 1) -> Path:
        """The folder of the bundle of a size; made in another process, because a child's peak begins with its parent's."""
        place = self.folder / f"{size}-{seed}"
        if not (place / "truth.json").exists():
            given = ("--size", str(size), "--seed", str(seed))
            subprocess.run((PYTHON, Path(__file__).with_name("make_bundle.py"), place, *given), check=True)
        return place

    def row(self, bar: int, what: str, figure: float, must: float, aim: float, most: bool = True) -> None:
        """A line of the table; `most` says whether the limits are the most or the least that is allowed."""
        ok = figure <= must if most else figure >= must
        self.rows.append({"bar": bar, "what": what, "figure": round(figure, 3), "must": must, "aim": aim, "ok": ok})

    def whole(self) -> None:
        """Bars 1, 2, 5 and 6: the whole analysis."""
        full, quarter = (self.bundle(size) / "bundle.tar.gz" for size in (self.size, self.size // 4))
        fast = ("igzip", "-dc") if shutil.which("igzip") else (PYTHON, "-c", INFLATE)
        commands = {"full": self.analyze(full), "part": self.analyze(quarter)}
        taken = in_turn({**commands, "gzip": ("gzip", "-dc", full), "fast": (*fast, full)}, self.runs)
        ours, part = taken["full"], taken["part"]
        self.row(1, "analyze, wall / gzip -dc", ours.wall / taken["gzip"].wall, 1, 0.6)
        tool = "igzip -dc" if fast[0] == "igzip" else "a reader with isal"
        self.row(2, f"analyze, CPU / {tool}", ours.cpu / taken["fast"].cpu, 8, 6)
        self.row(5, "peak memory, MiB", ours.peak / MIB, 320, 256)
        self.row(5, "peak memory at a quarter of the size, MiB", part.peak / MIB, 320, 256)
        self.row(6, "analyze, CPU / at a quarter of the size", ours.cpu / part.cpu, 4.2, 4)

    def nodes(self) -> None:
        """Bar 5 as well: four nodes of a quarter of the size each, hundreds of sources."""
        bundles = [self.bundle(self.size // 4, seed) / "bundle.tar.gz" for seed in range(1, 5)]
        peak = cost(self.analyze(*bundles), None).peak
        self.row(5, "peak memory, four nodes of a quarter each, MiB", peak / MIB, 320, 256)

    def profile(self) -> None:
        """Bar 3: all figures of a request log."""
        log = self.worst("key=value")
        awk = ("mawk" if shutil.which("mawk") else "awk", PAIRS, log)
        ours = (*OOMDOC, "profile", log, "-q", "--format", "json")
        taken = in_turn({"ours": ours, "awk": awk}, self.runs, self.folder / "profile.txt")
        self.row(
            3, f"profile, CPU of {awk[0]} over all pairs / ours", taken["awk"].cpu / taken["ours"].cpu, 4, 8, most=False
        )

    def search(self) -> None:
        """Bar 4: all anchors in the server logs."""
        logs = sorted((self.bundle(self.size) / "bundle/server").iterdir())
        anchors, hits = self.folder / "anchors.txt", self.folder / "hits.txt"
        cost((PYTHON, "-c", PRINT), anchors)
        tool = ("rg", "-j1", "-a", "-c", "-F", "-f") if shutil.which("rg") else ("grep", "-a", "-c", "-F", "-f")
        taken = in_turn({"ours": (PYTHON, "-c", SEARCH, *logs), "tool": (*tool, anchors, *logs)}, self.runs, hits)
        self.row(
            4, f"search, CPU of {' '.join(tool)} / ours", taken["tool"].cpu / taken["ours"].cpu, 1.5, 2.5, most=False
        )

    def worst(self, kind: str) -> Path:
        """The input of one kind alone; as much of it as the mixed bundle holds."""
        name, rows = WORST[kind]
        path = self.folder / f"{self.size}-{kind.replace(' ', '-')}" / name
        if not path.exists():
            write(part := path.with_suffix(".part"), rows(random.Random(1)), self.size, Counter())
            part.replace(path)
        return path

    def worsts(self) -> None:
        """Bar 7: inputs of one kind alone, against the mixed bundle as a folder."""
        mixed = self.bundle(self.size) / "bundle"
        whole = cost(self.analyze(mixed), None)
        for kind in WORST:
            try:
                figure = cost(self.analyze(self.worst(kind)), None).cpu / whole.cpu
            except EndedError as problem:
                print("bench:", problem, file=sys.stderr)
                figure = math.inf
            self.row(7, f"{kind} alone, CPU / mixed", figure, 2.2, 1.5)

    def small(self) -> None:
        """Bar 8: start-up."""
        archive = self.bundle(MIB) / "bundle.tar.gz"
        commands = {"--version": (*OOMDOC, "--version"), "--help": (*OOMDOC, "--help")}
        commands["analyze of 1 MB"] = self.analyze(archive)
        taken = in_turn({"pass": (PYTHON, "-c", "pass"), **commands}, 7)
        for name, must, aim in zip(commands, (3, 15, 45), (2, 6, 30), strict=True):
            self.row(8, f"{name}, CPU / python -c pass", taken[name].cpu / taken["pass"].cpu, must, aim)

    def sweeps(self) -> None:
        """Bar 9: a fleet of small bundles, and the night after it."""
        fleet, store = self.folder / "fleet", self.folder / "store"
        subprocess.run((PYTHON, FLEET, fleet, "--bundles", str(FLEET_BUNDLES)), check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(store, ignore_errors=True)
        night = (*OOMDOC, "sweep", fleet, "--store", store, "-q")
        first, second = (cost(night, self.folder / "night.txt") for _ in range(2))
        one = cost(self.analyze(self.bundle(MIB) / "bundle.tar.gz"), None)
        self.row(9, "sweep, CPU a small bundle / analyze of 1 MB", first.cpu / FLEET_BUNDLES / one.cpu, 0.5, 0.3)
        self.row(9, f"second sweep of {FLEET_BUNDLES} / first, CPU", second.cpu / first.cpu, 0.01, 0.003)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows in Markdown, as docs/performance.md has them."""
    lines = ["| bar | figure | | must | aim | |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        said = "ok" if row["ok"] else "**missed**"
        lines.append(
            f"| {row['bar']} | {row['what']} | {row['figure']:.3g} | {row['must']:g} | {row['aim']:g} | {said} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure oomdoc on generated bundles.")
    parser.add_argument("--size", type=parse_size, default="256M", help="bytes of content, e.g. 64M, 1G")
    parser.add_argument("--bars", default="1,2,3,4,5,6,7,8,9")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the bundles here and use them again")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    adopt()
    with tempfile.TemporaryDirectory(prefix="oomdoc-bench-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, options.size)
        bars = {int(bar) for bar in options.bars.split(",")}
        measured = (
            ({1, 2, 5, 6}, bench.whole),
            ({5}, bench.nodes),
            ({3}, bench.profile),
            ({4}, bench.search),
            ({7}, bench.worsts),
            ({8}, bench.small),
            ({9}, bench.sweeps),
        )
        for needed, measure in measured:
            if bars & needed:
                try:
                    measure()
                except EndedError as problem:
                    print("bench:", problem, file=sys.stderr)
                    bench.row(min(needed), f"{measure.__name__}: a command failed", math.inf, 0, 0)
        wrong = differences(bench.bundle(options.size))
    rows = sorted((row for row in bench.rows if row["bar"] in bars), key=lambda row: row["bar"])
    print(f"{options.size >> 20} MiB of content, evidence {'WRONG' if wrong else 'as generated'}\n")
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"size": options.size, "wrong": wrong, "rows": rows}, indent=1) + "\n")
    for line in wrong:
        print("bench:", line, file=sys.stderr)
    return int(bool(wrong) or (options.strict and not all(row["ok"] for row in rows)))


if __name__ == "__main__":
    sys.exit(main())
