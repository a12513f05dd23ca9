"""What a report may be trusted with: its references resolve, missing sources make it less sure, and healthy stays healthy."""

from __future__ import annotations

import functools
import json
import shutil
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grids import WHOLE, report_of, some
from oomdoc.errors import BundleError
from verdicts import analysed

ROOT = Path(__file__).parents[1]
SAMPLES = sorted(path.parent for path in (ROOT / "sample_logs").glob("*/case.toml"))
CERTAIN = 0.75  # a wrong answer below it still reads as a suspicion


def label(folder: Path) -> set[str]:
    told = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    return {told["cause"], *told.get("also", [])}


@functools.cache
def report(path: Path) -> dict[str, Any]:
    return json.loads(json.dumps(report_of(path.name).to_dict()))


def unpacked(folder: Path, into: Path) -> Path:
    """A copy of a sample in which every file lies open."""
    shutil.copytree(folder, into, ignore=shutil.ignore_patterns("case.toml"))
    for packed in [path for path in into.rglob("*") if path.is_file()]:
        if tarfile.is_tarfile(packed):
            with tarfile.open(packed) as archive:
                archive.extractall(packed.with_suffix(".d"), filter="data")
            packed.unlink()
        elif zipfile.is_zipfile(packed):
            with zipfile.ZipFile(packed) as entries:
                entries.extractall(packed.with_suffix(".d"))
            packed.unlink()
    return into


@pytest.mark.parametrize("sample", some(SAMPLES, 3), ids=lambda path: path.name)
def test_without_any_one_source_no_wrong_answer_is_certain(sample: Path, tmp_path: Path) -> None:
    whole = unpacked(sample, tmp_path / "whole")
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    for left_out in files if len(files) > 1 else []:
        partly = tmp_path / "partly"
        shutil.copytree(
            whole,
            partly,
            ignore=lambda folder, names, left_out=left_out: [n for n in names if Path(folder, n) == whole / left_out],
        )
        try:
            with analysed(partly) as analysis:
                first = analysis.report.diagnoses[0]
                told = f"without {left_out}: {first.cause} {first.probability}"
                assert first.cause in label(sample) or first.probability < CERTAIN, told
        except BundleError:
            pass
        shutil.rmtree(partly)


def references(value: Any) -> Iterator[str]:
    """Every `ref`, and every entry of `refs` and `cascade`, wherever it stands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "ref" and isinstance(inner, str):
                yield inner
            elif name in ("refs", "cascade") and isinstance(inner, list):
                yield from inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for entry in value:
            yield from references(entry)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_reference_is_a_line_that_was_read(sample: Path) -> None:
    told = report(sample)
    lines = {row["path"]: row["lines"] for row in told["coverage"]["sources"]}
    found = list(references(told))
    assert found
    for ref in found:
        path, _, line = ref.rpartition(":")
        assert path in lines, f"{ref} is of no source"
        assert 1 <= int(line) <= lines[path], f"{ref} lies behind the end"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_likely_rival_says_what_speaks_against_it(sample: Path) -> None:
    told = report(sample)
    for ranked in [told["diagnoses"], *(incident["diagnoses"] for incident in told["incidents"])]:
        for rival in ranked[1:]:
            if rival["probability"] > 0.1 and rival["cause"] not in label(sample):
                assert rival["against"], f"{rival['cause']} {rival['probability']}"


HEALTHY = next(path for path in SAMPLES if path.name == "healthy-full-device")
SCARY = {
    "words in prompts": "INFO 11-18 13:40:00 [logger.py:43] Received request chatcmpl-9: prompt: 'torch.OutOfMemoryError: CUDA out of memory. "
    "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.00 GiB is free. KILLED by the kernel oom-killer, exit code 137', params: SamplingParams(n=1)",
    "a help text": "--gpu-memory-utilization: the fraction of GPU memory; if you see out of memory errors try to lower it, default 0.9",
    "a warning of a normal start": "WARNING 11-18 13:40:00 [config.py:1668] Possibly too large swap space. 4.00 GiB out of the 31.00 GiB total CPU memory is allocated for the swap space.",
    "expandable segments are advised": "INFO 11-18 13:40:00 [docs.py:1] see also: If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation",
    "a client went away": "INFO 11-18 13:40:00 [async_llm.py:420] Request chatcmpl-77 aborted.",
}


@pytest.mark.parametrize("kinds", [[kind] for kind in SCARY] if WHOLE else [[*SCARY]], ids="+".join)
def test_a_healthy_server_stays_healthy_whatever_it_prints(kinds: list[str], tmp_path: Path) -> None:
    """All in one log: none of these lines speaks for health, so what one of them would turn they turn together."""
    bundle = unpacked(HEALTHY, tmp_path / "bundle")
    log = max((path for path in bundle.rglob("*") if path.is_file()), key=lambda path: path.read_bytes().count(b"INFO"))
    lines = log.read_text(encoding="utf-8").splitlines()
    lines[len(lines) // 2 : len(lines) // 2] = [SCARY[kind] for kind in kinds] * 5
    log.write_text("\n".join([*lines, *(SCARY[kind] for kind in kinds)]) + "\n", encoding="utf-8")
    with analysed(bundle) as analysis:
        assert analysis.report.verdict == "healthy", analysis.report.diagnoses[0]
