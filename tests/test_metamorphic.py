"""The same facts in another shape give the same diagnosis; less evidence gives less certainty, never the opposite.

`shapes.py` has the shapes: what collectors put around lines, names and order of files, rotation, compression, archives. What is put
around lines is gone once they are read: each envelope is held to give the same rows, and a few of them the same diagnosis. Each shape
of files is diagnosed, on one sample; `make metamorphic` diagnoses every shape of all samples.
"""

from __future__ import annotations

import functools
import gzip
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forms
import oomdoc
import shapes
from grids import report_of, some
from oomdoc.errors import BundleError
from oomdoc.judge.wording import ID as WORDING
from oomdoc.model import Report

SAMPLES = Path(__file__).parents[1] / "sample_logs"
LOGS = {
    "graph-capture-on-24gb": "vllm.log",  # coloured tags, a record glued to a progress bar
    "sampler-warmup-1024": "vllm.log",  # two ranks, chained tracebacks, carriage returns
    "killed-while-loading": "vllm-previous.log",  # the evidence lies beside the log
}
GRAPHS, SAMPLER, KILLED = LOGS
Files = Mapping[str, bytes]


class Told(NamedTuple):
    """The first cause with its probability, and the weight of every item of every cause that the bundle can answer."""

    cause: str
    probability: float
    evidence: tuple[str, ...]
    weights: Mapping[tuple[str, str], float]


@functools.cache
def files(name: str) -> Files:
    """A sample without its label."""
    folder = SAMPLES / name
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "case.toml")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def diagnosed(path: Path) -> Told:
    with oomdoc.analyze(path) as analysis:
        return told_of(analysis.report)


def told_of(report: Report) -> Told:
    diagnoses = report.diagnoses
    first = diagnoses[0]
    weights = {(item.cause, piece.id): piece.weight for item in diagnoses for piece in (*item.evidence, *item.against)}
    ids = tuple(sorted(piece.id for piece in (*first.evidence, *first.against)))
    return Told(first.cause, first.probability, ids, weights)


def laid_out(root: Path, content: Files) -> Path:
    for name, data in content.items():
        target = root / "bundle" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return root / "bundle"


# ---- shapes

NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/case.toml"))
PAIRS = [(name, shape) for name in NAMES for shape in shapes.SHAPES]
TRIED = [*some(list(shapes.ENVELOPES), 6), *shapes.FILES]
CHOSEN = (
    PAIRS
    if os.environ.get("OOMDOC_METAMORPHIC")
    else [(NAMES[place * 5 % len(NAMES)], shape) for place, shape in enumerate(TRIED)]
)


@functools.cache
def rows(name: str, envelope: str = "") -> Counter[tuple[Any, ...]]:
    """What the logs of a sample tell, apart from when, in which line and by whom: a record with a progress bar is cut as one is read."""
    logs = {path: data for path, data in files(name).items() if shapes.is_log(path, data)}
    told = Counter[tuple[Any, ...]]()
    for path, data in (shapes.SHAPES[envelope](logs) if envelope else logs).items():
        for table, found in forms.read(path, data)[1].items():
            for row in found:
                if not is_own_to_an_envelope(table, row):
                    told[(table, *((key, repr(row[key])) for key in sorted(row.keys() - {"line", "t", "process", "pid"})))] += 1  # fmt: skip
    return told


def is_own_to_an_envelope(table: str, row: Mapping[str, Any]) -> bool:
    """Steps of a progress bar, which are one record where a collector counts lines; syslog's own fields, which are set to a value; the pod that is told."""
    return (
        (table == "milestone" and row["name"] == "capture-progress")
        or table == "trial"
        or row.get("topic") == "log-of-pod"
    )


@pytest.mark.parametrize("envelope", shapes.ENVELOPES)
def test_an_envelope_changes_no_row(envelope: str) -> None:
    for name in (GRAPHS, KILLED):
        before, after = rows(name), rows(name, envelope)
        assert sum(before.values()) > 50
        assert after == before, (before - after, after - before)


@pytest.mark.parametrize(("name", "shape"), CHOSEN, ids=[f"{shape}-{name}" for name, shape in CHOSEN])
def test_a_shape_changes_nothing(name: str, shape: str, tmp_path: Path) -> None:
    before = shapes.told_of(report_of(name))
    after = shapes.told(shapes.laid_out(tmp_path, shapes.SHAPES[shape](files(name))))
    assert after.same(before), f"{before}\n{after}"


def test_every_shape_changes_some_sample() -> None:
    """A shape that leaves every file as it is would prove nothing."""
    idle = [shape for shape in shapes.SHAPES if all(_same_bytes(shape, name) for name in (GRAPHS, KILLED))]
    assert idle == []


def _same_bytes(shape: str, name: str) -> bool:
    after = shapes.SHAPES[shape](files(name))
    return list(after.items()) == list(files(name).items())


def test_the_weights_of_an_archive_are_those_of_the_folder(tmp_path: Path) -> None:
    packed = tmp_path / "bundle.tar.gz"
    packed.write_bytes(gzip.compress(shapes.tar(files(KILLED))))
    assert diagnosed(packed).weights == told_of(report_of(KILLED)).weights


# ---- less evidence


@pytest.mark.parametrize(("name", "gone"), [(name, path) for name in (KILLED, GRAPHS) for path in files(name)])
def test_a_source_taken_away_turns_no_evidence_round(name: str, gone: str, tmp_path: Path) -> None:
    rest = {path: data for path, data in files(name).items() if path != gone}
    before, after = told_of(report_of(name)).weights, diagnosed(laid_out(tmp_path, rest)).weights
    turned = {key: (before[key], after[key]) for key in before.keys() & after.keys() if before[key] * after[key] < 0}
    assert {key for key in turned if key[1] != WORDING} == set()  # the words are those of the whole bundle


# ---- anything at all


def _lines() -> list[bytes]:
    every = [line for name in LOGS for line in files(name)[LOGS[name]].split(b"\n")]
    return [line[:cut] for line in every[::7] for cut in (4000, 90)]


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(st.binary(max_size=120), st.text(max_size=40).map(str.encode), st.sampled_from(_lines())), max_size=16), st.sampled_from([b"\n", b"\r\n", b"\r", b"\x00"]))  # fmt: skip
def test_any_bytes_are_a_log_or_no_bundle(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], end: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "vllm.log"
    path.write_bytes(end.join(pieces))
    try:
        with oomdoc.analyze(path) as analysis:
            assert analysis.report.verdict in ("diagnosed", "healthy", "not-memory", "undecided")
    except BundleError as refused:
        assert str(refused)
