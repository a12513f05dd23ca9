"""Kills a sweep again and again at random moments and holds its store against that of an undisturbed one.

    python crash.py --rounds 50 [--bundles 10] [--seed 1]

A round sweeps into a new store; it is killed up to three times (SIGKILL, a random moment after the store has a random number
of files, so that every phase is hit on a machine of any speed), then let run. Prints how often it was killed, and how many
stores differ.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fleet"))

from make_fleet import write_fleet

NIGHT = "2026-11-20"
DRIVER = Path(__file__).with_name("driver.py")


def start(store: Path, fleet: Path) -> subprocess.Popen[bytes]:
    """A sweep that runs."""
    return subprocess.Popen([sys.executable, str(DRIVER), str(store), NIGHT, "embedded", str(fleet)])


def contents(store: Path) -> tuple[object, object]:
    """What the manifest says, and that the folder holds nothing else."""
    manifest = json.loads((store / json.loads((store / "manifest.json").read_text())["record"]).read_text())
    named = {part["path"] for part in manifest["files"]} | set(manifest["retired"])
    there = {
        path.relative_to(store).as_posix()
        for path in store.rglob("*")
        if path.suffix == ".parquet" or path.name.startswith(".")
    }
    lost = there ^ named
    return manifest["files"], [manifest["nights"], manifest["pending"], sorted(lost)]


def kill(process: subprocess.Popen[bytes], store: Path, files: int, delay_s: float) -> bool:
    """Kill a sweep when its store has so many files, a moment later; False where it was done before."""
    while process.poll() is None:
        if files == 0 or (store.exists() and sum(path.is_file() for path in store.rglob("*")) >= files):
            time.sleep(delay_s)
            process.send_signal(signal.SIGKILL)
            return process.wait() == -signal.SIGKILL
        time.sleep(0.005)
    return False


def rounds(number: int, bundles: int, seed: int, folder: Path, kills: int = 3) -> tuple[int, int]:
    """(sweeps killed, stores that differ) over so many rounds."""
    rng = random.Random(seed)
    fleet = folder / "fleet"
    write_fleet(fleet, bundles, seed)
    assert start(folder / "whole", fleet).wait() == 0
    wanted = contents(folder / "whole")
    most = 8 * (bundles // 2 + 1)  # files per batch, and those of the night
    killed = wrong = 0
    for attempt in range(number):
        store = folder / f"store{attempt}"
        for _ in range(kills):
            killed += kill(start(store, fleet), store, rng.randrange(most), rng.choice((0.0, rng.uniform(0, 0.3))))
        assert start(store, fleet).wait() == 0
        wrong += contents(store) != wanted
    return killed, wrong


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--bundles", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killed, wrong = rounds(given.rounds, given.bundles, given.seed, Path(folder))
    print(f"{killed} sweeps killed in {given.rounds} rounds, {wrong} stores differ")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
