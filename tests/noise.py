"""Noise as a test: innocent evidence beside a labelled bundle turns no verdict, and nobody's bundle is told a cause.

`python tests/noise.py CASES_DIR` lays evidence of `noise_beside.py` beside every case (`--variants` times two kinds each),
diagnoses it with and without, and adds the bundles of `noise_alone.py`, which hold no server. It prints how often the first
cause stays, how often a cause that the label does not allow becomes sure, and which kinds of evidence turn verdicts.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import noise_alone
import noise_beside
import oomdoc
import shapes
from oomdoc.diagnose import Options
from oomdoc.errors import BundleError
from oomdoc.judge.rules import load_rules
from oomdoc.judge.wording import ID as WORDING
from oomdoc.model import Report

SURE = 0.5
"""From here on a first cause is told as the answer (the verdict is no longer `undecided`)."""
NO_MEMORY_CAUSE = frozenset({"", "healthy", "not-memory", "no-server"})
"""What a bundle without a server may be told: that there is nothing, or that it is not a matter of a server's memory."""
MAY_BE_HEALTHY = frozenset({"healthy", "not-memory"})


class Verdict(NamedTuple):
    """The first cause of a bundle ("" = none), its probability, and the sentences of its evidence."""

    cause: str
    probability: float
    sentences: frozenset[str] = frozenset()

    def sure_of_other_than(self, allowed: Iterable[str]) -> bool:
        """Whether a cause is told that is not allowed."""
        return self.probability >= SURE and bool(self.cause) and self.cause not in allowed


class Variant(NamedTuple):
    """A case with kinds of noise beside it, and what is told without and with them."""

    case: str
    kinds: tuple[str, ...]
    allowed: tuple[str, ...]
    bare: Verdict
    noisy: Verdict

    @property
    def kept(self) -> bool:
        """Whether the first cause is that of the bare bundle."""
        return self.bare.cause == self.noisy.cause

    @property
    def mixed(self) -> frozenset[str]:
        """Sentences about the same cause that only the noisy bundle has: an event of somebody else is in them."""
        return self.noisy.sentences - self.bare.sentences if self.kept else frozenset()

    @property
    def wronged(self) -> bool:
        """Whether the noise made a cause sure that the label does not allow, and that was not told before."""
        return not self.kept and self.noisy.sure_of_other_than(self.allowed)


@functools.cache
def _rules() -> Options:
    return Options(loaded=load_rules(None, tests=False))


def verdict(files: noise_beside.Files) -> Verdict:
    """The first cause of a bundle made of these files."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with oomdoc.analyze(shapes.laid_out(Path(scratch), files), _rules()) as analysis:
                return verdict_of(analysis.report)
        except BundleError:
            return Verdict("", 0.0)


def verdict_of(report: Report) -> Verdict:
    """The first cause of a report."""
    first = report.diagnoses[:1]
    if not first:
        return Verdict("", 0.0)
    # the words are those of the whole bundle, and of no event
    said = frozenset(piece.says for piece in (*first[0].evidence, *first[0].against) if piece.id != WORDING)
    return Verdict(first[0].cause, first[0].probability, said)


def label(folder: Path) -> tuple[str, ...]:
    """The causes that a case allows in the first place: its own, and those that a fair expert could name as well."""
    told = tomllib.loads((folder / "case.toml").read_text("utf-8"))
    return (told["cause"], *told.get("also", []))


@functools.cache
def _bare(folder: Path) -> Verdict:
    """What is told of a case as it is, diagnosed once in a process."""
    return verdict(shapes.files_of(folder))


def of_case(folder: Path, variants: int = 3, count: int = 2, only: str | None = None, bare: Verdict | None = None) -> list[Variant]:  # fmt: skip
    """The variants of one case; `bare` is what is told of it as it is, where that is known."""
    files, allowed = shapes.files_of(folder), label(folder)
    bare = bare or _bare(folder)
    out = []
    for number in range(variants):
        noisy, kinds = noise_beside.with_noise(files, f"{folder.name}/{number}", count, only)
        if kinds:
            out.append(Variant(folder.name, kinds, allowed, bare, verdict(noisy)))
    return out


def without_server(every: int = 1) -> dict[str, Verdict]:
    """What is told of bundles that hold no server: of all, or of each N-th."""
    return {name: verdict(files) for name, files in [*noise_alone.bundles().items()][::every]}


def share(part: int, whole: int) -> str:
    """`0.448 (215/480)`."""
    return f"{part / whole if whole else 0:.3f} ({part}/{whole})"


def report(variants: Sequence[Variant], alone: dict[str, Verdict]) -> str:
    """The figures as text."""
    n = len(variants)
    bare = {variant.case: variant for variant in variants}
    fair = sum(one.bare.cause in one.allowed for one in bare.values())
    healthy = [one for one in variants if set(one.allowed) & MAY_BE_HEALTHY]
    ill = lambda told: told.sure_of_other_than(NO_MEMORY_CAUSE)  # noqa: E731
    lines = [
        f"cases {len(bare)}, variants {n}",
        f"first cause kept                            {share(sum(one.kept for one in variants), n)}",
        f"fair to the label, bare                     {share(fair, len(bare))}",
        f"fair to the label, with noise               {share(sum(one.noisy.cause in one.allowed for one in variants), n)}",
        f"sure of a cause not allowed, bare           {share(sum(one.bare.sure_of_other_than(one.allowed) for one in bare.values()), len(bare))}",
        f"sure of a cause not allowed, with noise     {share(sum(one.noisy.sure_of_other_than(one.allowed) for one in variants), n)}",
        f"a sentence of the evidence changed           {share(sum(bool(one.mixed) for one in variants), n)}",
        f"became sure of a cause not allowed          {share(sum(one.wronged for one in variants), n)}",
        f"may be healthy, told a memory cause, bare   {share(sum(ill(one.bare) for one in healthy), len(healthy))}",
        f"may be healthy, told a memory cause, noise  {share(sum(ill(one.noisy) for one in healthy), len(healthy))}",
        f"no server, told a cause                     {share(sum(ill(told) for told in alone.values()), len(alone))}",
        f"no server, told anything at all             {share(sum(told.probability >= SURE for told in alone.values()), len(alone))}",
        "",
        "kinds that turned a verdict: turned/used, usually to",
    ]  # fmt: skip
    for kind in noise_beside.KINDS:
        used = [one for one in variants if kind in one.kinds]
        turned = [one.noisy.cause for one in used if not one.kept]
        if turned:
            usual = max(set(turned), key=turned.count)
            lines.append(f"  {kind:36s} {len(turned):3d}/{len(used):<3d} {usual}")
    lines += ["", "bundles without a server that were told a cause"]
    lines += [f"  {name:28s} {told.cause} {told.probability:.2f}" for name, told in alone.items() if ill(told)]
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--variants", type=int, default=3, help="variants of a case (default 3)")
    parser.add_argument("--kinds", type=int, default=2, help="kinds of noise in a variant (default 2)")
    parser.add_argument("--kind", choices=sorted(noise_beside.KINDS), help="this kind alone")
    parser.add_argument("--every", type=int, default=1, help="each N-th case only")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--turned", action="store_true", help="print every variant that was turned")
    chosen = parser.parse_args(argv)
    folders = [path.parent for path in sorted(chosen.cases.glob("*/case.toml")) if chosen.only in path.parent.name]
    began = time.monotonic()
    work = functools.partial(of_case, variants=chosen.variants, count=chosen.kinds, only=chosen.kind)
    with multiprocessing.Pool(chosen.jobs) as pool:
        alone = pool.apply_async(without_server)
        variants = [one for part in pool.imap_unordered(work, folders[:: chosen.every], 1) for one in part]
        told = alone.get()
    variants.sort()
    if chosen.turned:
        for one in variants:
            for sentence in sorted(one.mixed):
                print(f"{one.case} {'+'.join(one.kinds)} says: {sentence}")
            if not one.kept:
                print(f"{one.case} {'+'.join(one.kinds)}: {one.bare.cause} {one.bare.probability:.2f} -> {one.noisy.cause} {one.noisy.probability:.2f}{' WRONG' if one.wronged else ''}")  # fmt: skip
    print(report(variants, told))
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
