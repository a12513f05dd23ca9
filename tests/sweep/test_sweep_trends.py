"""The morning report on made-up nights: what is new, back, gone, and what moved; and evidence judged again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from oomdoc import diagnose
from oomdoc.judge.rules import load_rules
from oomdoc.model.morning import Morning
from oomdoc.sweep import evidence
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.places import Access, place
from oomdoc.sweep.trends import morning

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(path for path in (ROOT / "sample_logs").iterdir() if (path / "case.toml").is_file())


def bundle(number: int, failing: bool, *, version: str = "0.27.1", host: str | None = None, model: str = "m-8b", status: str = "read", flags: str | None = None) -> dict[str, Any]:  # fmt: skip
    return {
        "bundle": f"/b/{number}", "host": host, "status": status, "model": model, "version": version, "flags": flags,
        "verdict": "diagnosed" if failing else "healthy", "new_failures": int(failing), "bytes": 10, "oomdoc_version": "0.1.0",
    }  # fmt: skip


def incident(number: int, fingerprint: str, *, first_night: str | None = None, cause: str = "gpu-shared", host: str | None = None, model: str = "m-8b") -> dict[str, Any]:  # fmt: skip
    return {
        "bundle": f"/b/{number}", "incident": "i1", "incident_key": hashlib.sha256(f"{number}{fingerprint}".encode()).hexdigest()[:16],
        "fingerprint": fingerprint, "kind": "oom", "cause": cause, "probability": 0.9, "host": host, "model": model, "first_night": first_night,
    }  # fmt: skip


def told(folder: Path, *nights: tuple[str, list[dict[str, Any]], list[dict[str, Any]]]) -> Morning:
    """The report of the last of several nights."""
    dataset = Dataset(place(str(folder), Access())).load()
    for night, bundles, incidents in nights:
        rows = {
            "bundle": [{"night": night, **row} for row in bundles],
            "incident": [{**row, "night": night, "first_night": row["first_night"] or night} for row in incidents],
        }
        dataset.batch(night, rows)
        dataset.commit_night(night, {"night": night, "found": len(bundles)}, {})
    return morning(dataset, nights[-1][0], None)


def test_new_recurring_and_resolved(tmp_path: Path) -> None:
    report = told(
        tmp_path,
        ("2026-11-18", [bundle(1, True), bundle(2, True)], [incident(1, "old"), incident(2, "gone")]),
        (
            "2026-11-19",
            [bundle(3, True), bundle(4, True), bundle(1, False)],
            [incident(3, "old"), incident(4, "fresh"), incident(1, "old", first_night="2026-11-18")],
        ),
    )
    assert [(group.fingerprint, group.new, group.incidents, group.before, group.nights) for group in report.groups] == [
        ("fresh", True, 1, 0, 1),
        ("old", False, 1, 1, 2),
    ]
    assert [(item.fingerprint, item.last_night, item.read) for item in report.resolved] == [("gone", "2026-11-18", 3)]
    assert report.previous == "2026-11-18"


def test_silence_is_no_cure(tmp_path: Path) -> None:
    """Nothing of the host or the model was read: nobody knows whether it is resolved."""
    report = told(
        tmp_path,
        ("2026-11-18", [bundle(1, True, host="h1", model="a")], [incident(1, "gone", host="h1", model="a")]),
        ("2026-11-19", [bundle(2, False, host="h2", model="b")], []),
    )
    assert report.resolved == ()


def test_a_version_that_fails_more_is_a_change_point(tmp_path: Path) -> None:
    before = [bundle(n, n < 2) for n in range(50)]
    after = [bundle(100 + n, n < 14, version="0.28.0") for n in range(40)]
    report = told(tmp_path, ("2026-11-17", before, []), ("2026-11-18", after, []))
    (point,) = report.changes
    assert (point.what, point.subject, point.before, point.after, point.since) == (
        "version",
        "m-8b",
        "0.27.1",
        "0.28.0",
        "2026-11-18",
    )
    assert (point.before_failing, point.before_bundles, point.after_failing, point.after_bundles) == (2, 50, 14, 40)


def test_the_same_share_in_both_versions_is_none(tmp_path: Path) -> None:
    before = [bundle(n, n < 5) for n in range(50)]
    after = [bundle(100 + n, n < 5, version="0.28.0") for n in range(40)]
    assert told(tmp_path, ("2026-11-17", before, []), ("2026-11-18", after, [])).changes == ()


def test_a_flag_that_moved_is_told_with_its_values(tmp_path: Path) -> None:
    before = [bundle(n, False, flags='{"max_num_seqs":64}') for n in range(40)]
    after = [bundle(100 + n, n < 20, flags='{"max_num_seqs":256}') for n in range(40)]
    (point,) = told(tmp_path, ("2026-11-17", before, []), ("2026-11-18", after, [])).changes
    assert (point.what, point.before, point.after) == ("max_num_seqs", "64", "256")


def test_a_cause_that_begins_one_night_is_dated(tmp_path: Path) -> None:
    nights = []
    for day in range(10, 19):
        hit = day >= 15
        ids = [day * 100 + n for n in range(30)]
        nights.append(
            (f"2026-11-{day}", [bundle(n, hit and n % 100 < 9) for n in ids], [incident(n, "f", cause="gpu-shared") for n in ids if hit and n % 100 < 9])
        )  # fmt: skip
    points = [point for point in told(tmp_path, *nights).changes if point.what == "night"]
    assert [(point.subject, point.since) for point in points] == [("gpu-shared", "2026-11-15")]


def test_a_host_that_stands_out(tmp_path: Path) -> None:
    bundles = [bundle(n, n % 20 == 0, host=f"h{n % 7}") for n in range(300)]
    assert told(tmp_path / "even", ("2026-11-18", bundles, [])).outliers == ()
    bundles += [bundle(1000 + n, n < 9, host="bad") for n in range(12)]
    (found,) = told(tmp_path / "bad", ("2026-11-18", bundles, [])).outliers
    assert (found.host, found.failing, found.bundles) == ("bad", 9, 12)


def test_what_new_rules_say_is_no_observation(tmp_path: Path) -> None:
    report = told(
        tmp_path,
        ("2026-11-17", [bundle(n, False) for n in range(30)], []),
        ("2026-11-18", [bundle(n, True, status="judged", version="0.28.0") for n in range(30)], []),
    )
    assert report.changes == ()
    assert report.counts.judged == 30
    assert all(trend.bundles == 0 for trend in report.trends)


@pytest.mark.parametrize("path", SAMPLES[::5], ids=lambda path: path.name)
def test_kept_evidence_gives_the_report_of_reading(path: Path) -> None:
    rules, faults = load_rules(None, tests=False)
    with diagnose.analyze(path) as analysis:
        packed = evidence.pack(analysis)
        wanted = analysis.report
    assert packed is not None
    assert evidence.judge(packed, rules, faults) == wanted


def test_evidence_beyond_its_bound_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MOST_ROWS", 3)
    with diagnose.analyze(SAMPLES[0]) as analysis:
        assert evidence.pack(analysis) is None
