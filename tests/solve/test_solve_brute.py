"""Every setting of a grid of flags against the fix that is proposed: none serves a tenth more requests in time.

The samples that the grid is tried on are those whose traffic fills the pool, as they are and with less of a pool. The whole
grid, on bundles of one's own: `tests/solve/brute.py`.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from brute import against_grid

import oomdoc
import oomdoc.assemble.assemble
from grids import WHOLE
from oomdoc.model import Action, Diagnosis
from oomdoc.solve import Situation
from oomdoc.solve.capped import uncapped
from oomdoc.solve.rehearsed import refilled, scaled

CHATS = Path(__file__).parents[2] / "sample_logs" / "kv-demand-long-chats"


def with_pool(folder: Path, share: float, utilization: float) -> Path:
    """The sample as a server with so much less of a pool and a smaller share of its devices would have logged it."""
    shutil.copytree(CHATS, folder)
    log = folder / "vllm.log"
    text = log.read_text()
    tokens = int(267_136 * share) // 16 * 16
    for old, new in (
        ("Available KV cache memory: 20.38 GiB", f"Available KV cache memory: {20.38 * share:.2f} GiB"),
        ("267,136", f"{tokens:,}"), ("8.15x", f"{tokens / 32_768:.2f}x"),
        ("non-default args: {", f"non-default args: {{'gpu_memory_utilization': {utilization}, "),
        ("from 0.9000 to", f"from {utilization:.4f} to"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    log.write_text(text)
    for scrape in folder.glob("*.prom"):
        scrape.write_text(re.sub(r'num_gpu_blocks="\d+"', f'num_gpu_blocks="{tokens // 16}"', scrape.read_text()))
    return folder


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Diagnosis, Situation]]]:
    """What the solver was given and made of it, while the bundle is open."""
    seen: list[tuple[Diagnosis, Situation]] = []
    real = oomdoc.assemble.assemble.solve

    def solve(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
        made = real(diagnosis, now)
        seen.append((made, now))
        return made

    monkeypatch.setattr(oomdoc.assemble.assemble, "solve", solve)
    yield seen


@pytest.mark.parametrize(("share", "utilization", "part"), [(1.0, 0.9, 3), (0.3, 0.72, 7), (0.06, 0.8, 7)])
def test_no_setting_of_a_grid_serves_a_tenth_more_in_time(
    share: float, utilization: float, part: int, solved: list[tuple[Diagnosis, Situation]], tmp_path: Path
) -> None:
    with oomdoc.analyze(with_pool(tmp_path / "bundle", share, utilization)) as analysis:
        assert analysis.report.diagnoses[0].cause == "kv-demand-exceeds-pool"
        diagnosis, now = solved[0]
        stage = now.rehearsal
        assert stage is not None
        fix = diagnosis.actions[0]
        found = against_grid(diagnosis, now, part=1 if WHOLE else part)
        assert found.mine is not None and found.mine >= found.before
        if fix.changes:
            assert stage.run(fix.changes).in_time == pytest.approx(found.mine)
        assert found.tried >= 20
        assert not found.beaten, found


def test_a_scaler_is_told_how_many_servers_the_traffic_asks_for(solved: list[tuple[Diagnosis, Situation]]) -> None:
    advice = Action("scale-on-the-queue", "Let the scaler follow the queue", "", "", {}, "", values={"maximum": 4})
    with oomdoc.analyze(CHATS):
        now = solved[0][1]
        told = scaled(advice, now)
        assert told.predicted["in_time"] > told.predicted["in_time_before"] and told.proof
        assert "2 such servers hold what came" in told.why
        assert scaled(dataclasses.replace(advice, changes={"max_num_seqs": 8}), now).proof == ""


@pytest.mark.parametrize(
    ("sequences", "pool", "near", "raised"), [(6, 10, True, True), (6, 10, False, False), (6, 1, True, None), (512, 10, True, False)]
)  # fmt: skip
def test_a_cap_beside_a_pool_with_room_is_raised_as_far_as_it_serves(
    sequences: int, pool: int, near: bool, raised: bool | None, solved: list[tuple[Diagnosis, Situation]]
) -> None:
    """Six at once of a pool ten times as large: who waits, waits for a place. On the pool as it is, the pool says how far."""
    with oomdoc.analyze(CHATS):
        diagnosis, now = solved[0]
        stage = now.rehearsal
        assert stage is not None
        larger = dataclasses.replace(stage.pool, tokens=stage.pool.tokens * pool)
        few = dataclasses.replace(stage.setup, max_num_seqs=sequences)
        now.__dict__["rehearsal"] = capped = dataclasses.replace(
            stage, pool=larger, setup=few, unchanged=None, near=near
        )
        first = dataclasses.replace(diagnosis, cause="not-memory", actions=())
        told = uncapped(first, now)
        if not raised:
            assert raised is None or told is first
            assert all(capped.run(each.changes).survives for each in told.actions)
            return
        (action,) = told.actions
        assert action.id == "raise-the-cap" and action.changes["max_num_seqs"] > sequences
        assert action.predicted["in_time"] > action.predicted["in_time_before"] + 0.1
        less = capped.run({"max_num_seqs": action.changes["max_num_seqs"] // 2})
        assert less.in_time < action.predicted["in_time"] - 0.01


def test_servers_of_a_queue_that_a_cap_makes_are_counted_by_who_is_in_time(
    solved: list[tuple[Diagnosis, Situation]],
) -> None:
    advice = Action("scale-on-the-queue", "Let the scaler follow the queue", "", "", {}, "", values={"maximum": 16})
    with oomdoc.analyze(CHATS):
        now = solved[0][1]
        stage = now.rehearsal
        assert stage is not None
        larger = dataclasses.replace(stage.pool, tokens=stage.pool.tokens * 10)
        few = dataclasses.replace(stage.setup, max_num_seqs=8)
        now.__dict__["rehearsal"] = dataclasses.replace(stage, pool=larger, setup=few, unchanged=None)
        told = scaled(advice, now)
        assert told.predicted["in_time"] >= 0.99 > told.predicted["in_time_before"] and told.predicted["survives"]


@pytest.mark.parametrize(("tokens", "helps"), [(600_000, True), (None, False)])
def test_a_pool_that_is_given_back_is_replayed(
    tokens: int | None, helps: bool, solved: list[tuple[Diagnosis, Situation]]
) -> None:
    values = {} if tokens is None else {"pool_after": tokens}
    advice = Action("move-the-neighbour", "Move the other process", "", "", {}, "", values=values)
    with oomdoc.analyze(CHATS):
        told = refilled(advice, solved[0][1])
    assert (told.predicted.get("in_time", 0.0) > 0.95) is helps and ("600,000 tokens" in told.proof) is helps
    assert helps or told is advice


def test_two_flags_that_serve_only_together_are_told_together(tmp_path: Path) -> None:
    """A third of the pool: 8 bits alone serve two thirds of the requests, the safe utilization alone as many."""
    with oomdoc.analyze(with_pool(tmp_path / "bundle", 0.3, 0.72)) as analysis:
        diagnosis = analysis.report.diagnoses[0]
    fix = diagnosis.actions[0]
    assert fix.id == "flags-together" and {*fix.changes} == {"gpu_memory_utilization", "kv_cache_dtype"}
    alone = next(each for each in diagnosis.actions if each.id == "halve-kv")
    assert fix.predicted["in_time"] > alone.predicted["in_time"] + 0.2 > alone.predicted["in_time_before"] + 0.2
    assert all(text in (diagnosis.command or "") for text in ("--kv-cache-dtype fp8", "--gpu-memory-utilization 0.9"))
    assert fix.when == "after-load-test" and diagnosis.until_then == "admit-less"


@pytest.mark.parametrize(
    ("utilization", "says"),
    [(0.9, "none of them alone has more"), (0.6, "alone `--gpu-memory-utilization 0.94` has 91%")],
)
def test_a_flag_that_starts_only_beside_another_is_tried_beside_it(
    utilization: float, says: str, tmp_path: Path
) -> None:
    """A sixteenth of the pool: 8 bits alone leave too little for the longest request, which the engine would refuse."""
    with oomdoc.analyze(with_pool(tmp_path / "bundle", 0.06, utilization)) as analysis:
        diagnosis = analysis.report.diagnoses[0]
    fix = diagnosis.actions[0]
    assert fix.id == "flags-together" and {*fix.changes} == {"gpu_memory_utilization", "kv_cache_dtype"}
    assert "max_model_len" not in fix.changes and says in fix.why
    assert fix.predicted["in_time"] > fix.predicted["in_time_before"] + 0.05
    assert all(flag in (diagnosis.command or "") for flag in ("--kv-cache-dtype fp8", "--gpu-memory-utilization 0.94"))


def test_a_replay_that_lacks_many_requests_is_a_hint_and_no_proof(tmp_path: Path) -> None:
    """A third of the requests without their sizes: what is replayed is another traffic, and each use of it says so."""
    folder = tmp_path / "bundle"
    shutil.copytree(CHATS, folder)
    requests = folder / "requests.log"
    lines = requests.read_text().splitlines(keepends=True)
    cut = [re.sub(r" output_tokens=\d+", "", line) if nth % 3 == 0 else line for nth, line in enumerate(lines)]
    assert sum(one != other for one, other in zip(lines, cut, strict=True)) > 500
    requests.write_text("".join(cut))
    with oomdoc.analyze(folder) as analysis:
        proven = [each for each in analysis.report.diagnoses[0].actions if "in_time" in each.predicted]
    assert proven
    for each in proven:
        assert each.proof.startswith("a hint and no proof")
        assert "of the requests lack a size or a time and are not in it" in each.proof
