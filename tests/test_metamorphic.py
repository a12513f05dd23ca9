"""The same facts in another shape give the same diagnosis; less evidence gives less certainty, never the opposite.

Shapes: what collectors put before a line, names and order of files, rotation, compression, archives. Each is tried on
one sample or two, so that every shape meets every kind of log while the suite stays quick.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oomdoc
from oomdoc.errors import BundleError

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
        diagnoses = analysis.report.diagnoses
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


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Told]:
    return functools.cache(lambda name: diagnosed(laid_out(tmp_path_factory.mktemp("plain"), files(name))))


def same(after: Told, before: Told) -> None:
    assert after.cause == before.cause
    assert after.probability == pytest.approx(before.probability, abs=0.02)
    assert after.evidence == before.evidence


# ---- envelopes: what collectors put before every physical line


def _stamp(number: int, digits: int = 9) -> str:
    return (
        f"2026-05-22T19:{10 + number // 600 % 50:02d}:{number // 10 % 60:02d}.{number % 10}" + "3" * (digits - 1) + "Z"
    )


def _docker(number: int, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": _stamp(number)})


ENVELOPES: dict[str, Callable[[int, str], str]] = {
    "docker json": _docker,
    "cri": lambda number, line: f"{_stamp(number)} stdout F {line}",
    "kubectl --timestamps": lambda number, line: f"{_stamp(number)} {line}",
    "kubectl --prefix": lambda number, line: f"[pod/engine-0/server] {line}",
    "compose": lambda number, line: f"engine-1  | {line}",
    "markdown quote": lambda number, line: f"> {line}",
}


@pytest.mark.parametrize(
    ("envelope", "name"),
    [
        ("docker json", GRAPHS),
        ("docker json", SAMPLER),
        ("cri", GRAPHS),
        ("kubectl --timestamps", SAMPLER),
        ("kubectl --prefix", GRAPHS),
        ("compose", KILLED),
        ("markdown quote", GRAPHS),
    ],
)
def test_an_envelope_changes_nothing(envelope: str, name: str, plain: Callable[[str], Told], tmp_path: Path) -> None:
    wrap = ENVELOPES[envelope]
    lines = files(name)[LOGS[name]].decode().split("\n")[:-1]
    wrapped = "".join(wrap(number, line) + "\n" for number, line in enumerate(lines))
    same(diagnosed(laid_out(tmp_path, {**files(name), LOGS[name]: wrapped.encode()})), plain(name))


# ---- files


@pytest.mark.parametrize("name", [KILLED])
def test_names_and_order_of_files_mean_nothing(name: str, plain: Callable[[str], Told], tmp_path: Path) -> None:
    content = list(files(name).items())
    random.Random(5).shuffle(content)
    renamed = {f"dump/{number:02d}-x.dat": data for number, (_, data) in enumerate(content)}
    same(diagnosed(laid_out(tmp_path, renamed)), plain(name))


@pytest.mark.parametrize("name", [GRAPHS])
def test_a_compressed_log_is_the_same_log(name: str, plain: Callable[[str], Told], tmp_path: Path) -> None:
    content = dict(files(name))
    content[LOGS[name] + ".gz"] = gzip.compress(content.pop(LOGS[name]))
    same(diagnosed(laid_out(tmp_path, content)), plain(name))


@pytest.mark.parametrize(("name", "share"), [(GRAPHS, 0.3), (SAMPLER, 0.5), (KILLED, 0.6)])
def test_a_rotated_log_names_the_same_cause(
    name: str, share: float, plain: Callable[[str], Told], tmp_path: Path
) -> None:
    """The settings stand in the older half then, the failure in the younger."""
    content = dict(files(name))
    lines = content[LOGS[name]].splitlines(keepends=True)
    cut = int(len(lines) * share)
    content[LOGS[name] + ".1"], content[LOGS[name]] = b"".join(lines[:cut]), b"".join(lines[cut:])
    same(diagnosed(laid_out(tmp_path, content)), plain(name))


def _tar(content: Files) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, data in content.items():
            entry = tarfile.TarInfo("bundle/" + name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


def _zip(content: Files) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr("bundle/" + name, data)
    return raw.getvalue()


ARCHIVES: dict[str, Callable[[Files], bytes]] = {
    ".tar": _tar,
    ".tar.gz": lambda content: gzip.compress(_tar(content)),
    ".tar.zst": lambda content: zstandard.ZstdCompressor().compress(_tar(content)),
    ".zip": _zip,
}


@pytest.mark.parametrize(
    ("suffix", "name"), [(".tar", GRAPHS), (".tar.gz", KILLED), (".tar.zst", SAMPLER), (".zip", KILLED)]
)
def test_an_archive_is_a_folder(suffix: str, name: str, plain: Callable[[str], Told], tmp_path: Path) -> None:
    packed = tmp_path / f"bundle{suffix}"
    packed.write_bytes(ARCHIVES[suffix](files(name)))
    after = diagnosed(packed)
    same(after, plain(name))
    assert after.weights == plain(name).weights


# ---- less evidence


@pytest.mark.parametrize(("name", "gone"), [(name, path) for name in (KILLED, GRAPHS) for path in files(name)])
def test_a_source_taken_away_turns_no_evidence_round(
    name: str, gone: str, plain: Callable[[str], Told], tmp_path: Path
) -> None:
    rest = {path: data for path, data in files(name).items() if path != gone}
    before, after = plain(name).weights, diagnosed(laid_out(tmp_path, rest)).weights
    turned = {key: (before[key], after[key]) for key in before.keys() & after.keys() if before[key] * after[key] < 0}
    assert turned == {}


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
