"""Every setting of a grid of flags, each on the project's own replay of a recording, against the fix that is proposed.

    python tests/solve/brute.py FOLDER...     # bundles, or folders of bundles; without one the samples

What is compared is what the solver promises: requests done in time. The grid holds what an operator could type for this
very server: flags that its release takes, utilization up to what is safe, ranks up to the devices that the bundle shows.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import oomdoc
import oomdoc.assemble.assemble
from oomdoc.errors import OomdocError
from oomdoc.fit.sheet import worksheet
from oomdoc.model import Diagnosis
from oomdoc.solve import Situation
from oomdoc.solve.guard import guard
from oomdoc.solve.predict import at_start

BEATEN_BY = 1.1
"""Times as many requests in time as the fix has: below that a search was not worth its settings."""
SAMPLES = Path(__file__).parents[2] / "sample_logs"
_STEPS = (1024, 2048, 4096, 8192)  # tokens of a step that servers are run with


@dataclass(frozen=True)
class Search:
    """A fix against a grid; shares of the requests that are done in time, 0..1. None = the fix is none that a replay shows."""

    cause: str
    fix: str
    before: float
    mine: float | None
    best: float
    by: dict[str, Any] = field(default_factory=dict)
    tried: int = 0
    near: bool = True
    """The replay shows the recording: where it does not, it proves nothing, neither of the fix nor of a setting."""

    @property
    def beaten(self) -> bool:
        """A setting of the grid serves clearly more than the fix does, or than no fix where the fix is not replayed."""
        return self.best > BEATEN_BY * (self.before if self.mine is None else self.mine)


def grid(now: Situation, part: int = 1) -> Iterator[dict[str, Any]]:
    """Settings that the engine would take and start with, of all or every so-manieth; flags that stay as they are, are left out."""
    stage = now.rehearsal
    assert stage is not None
    setup = stage.setup
    present, shares = stage.pool.utilization, [None]
    if present and now.question is not None:
        safe = worksheet(now.question).utilization
        most = safe.safest if safe is not None and safe.starts is True else present
        shares += [share for share in ((present + most) / 2, most) if share > present]
    seqs = [
        None,
        *(each for each in (setup.max_num_seqs // 8, setup.max_num_seqs // 2, setup.max_num_seqs * 2) if each),
    ]
    batched = [None, *(each for each in _STEPS if each != setup.max_num_batched_tokens)]
    devices = int(now.device.get("devices") or 1) // int(now.engine.get("pipeline_parallel_size") or 1)
    ranks = [None, *(2**nth for nth in range(1, 5) if stage.pool.tensor_parallel_size < 2**nth <= devices)]
    chunked = [None, not setup.chunked_prefill] if now.engine.get("generation") == "V0" else [None]
    caching = [None, not setup.prefix_caching]
    names = ("kv_cache_dtype", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "tensor_parallel_size",
             "enable_chunked_prefill", "enable_prefix_caching")  # fmt: skip
    every = itertools.product((None, "fp8") if now.on_gpu else (None,), shares, seqs, batched, ranks, chunked, caching)
    for setting in itertools.islice(every, 0, None, part):
        changes = {name: value for name, value in zip(names, setting, strict=True) if value is not None}
        guarded = guard(changes, now, devices=None)
        if changes and not guarded.refused and at_start(guarded.changes, now).values.get("starts") is not False:
            yield dict(guarded.changes)


def search(folder: Path) -> Search | None:
    """The leading fix of a bundle and the best of the grid; None where no traffic can be replayed."""
    seen: list[tuple[Diagnosis, Situation]] = []
    real = oomdoc.assemble.assemble.solve

    def solve(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
        made = real(diagnosis, now)
        seen.append((made, now))
        return made

    with patch.object(oomdoc.assemble.assemble, "solve", solve), oomdoc.analyze(folder):
        if not seen or seen[0][1].rehearsal is None:
            return None
        diagnosis, now = seen[0]
        return against_grid(diagnosis, now)


def against_grid(diagnosis: Diagnosis, now: Situation, part: int = 1) -> Search:
    """The first action of a solved diagnosis against the grid or a part of it, while the bundle is open."""
    stage = now.rehearsal
    assert stage is not None
    fix = diagnosis.actions[0] if diagnosis.actions else None
    mine = None
    if fix is not None and "in_time" in fix.predicted:
        mine = fix.predicted["in_time"] * fix.predicted.get("served", 1.0)
    before = stage.run({}).in_time
    best, by, tried = before, {}, 0
    for changes in grid(now, part):
        try:
            served = stage.run(changes).in_time
        except OomdocError:
            continue
        tried += 1
        if served > best:
            best, by = served, changes
    return Search(
        diagnosis.cause,
        "" if fix is None else f"{fix.id} {dict(fix.changes)}",
        before,
        mine,
        best,
        by,
        tried,
        stage.near,
    )


def bundles_in(folder: Path) -> list[Path]:
    """The bundles of a folder of labelled cases, or the folder itself."""
    inside = sorted(each.parent for each in folder.glob("*/case.toml"))
    return inside or [folder]


def main() -> int:
    """A line for each bundle with traffic; 1 where the grid beats a fix."""
    beaten = count = far = 0
    for bundle in itertools.chain.from_iterable(bundles_in(Path(each)) for each in sys.argv[1:] or [str(SAMPLES)]):
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "bundle"
            shutil.copytree(bundle, copy, ignore=shutil.ignore_patterns("case.toml", "truth.*"))
            found = search(copy)
        if found is None:
            continue
        count += 1
        beaten += found.beaten
        far += not found.near
        mine = "not replayed" if found.mine is None else f"{found.mine:.3f}"
        print(
            f"{'BEATEN ' * found.beaten}{'FAR ' * (not found.near)}{bundle.name} {found.cause}: {found.fix}: {mine} in time, {found.before:.3f} before; "
            f"best of {found.tried}: {found.best:.3f} by {found.by}", flush=True,
        )  # fmt: skip
    print(
        f"{beaten} of {count} bundles with traffic beaten by more than {BEATEN_BY - 1:.0%}; of {far} the replay is too far from the recording to tell"
    )
    return min(1, beaten)


if __name__ == "__main__":
    sys.exit(main())
