"""What a person reads first of a night: every standing incident, its state, its report; and what is no bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from night import night

from oomdoc.cli.entry import run
from oomdoc.errors import UsageError
from oomdoc.report.morning import FORMS
from oomdoc.sweep import states
from oomdoc.sweep.places import Access
from oomdoc.sweep.sources import find

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FIRST, SECOND, THIRD = "2026-11-20", "2026-11-21", "2026-11-22"
SOME = ("killed-while-loading", "weights-70b-on-one-card", "healthy-older-server", "startup-probe-too-short")

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for name in SOME:
        shutil.copytree(SAMPLES / name, tmp_path / "fleet" / name)
    return tmp_path / "fleet"


def test_states_are_kept_and_standing_incidents_do_not_vanish(fleet: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    told = night(store, fleet, FIRST)
    assert {item.state for item in told.standing} == {"new"}
    assert {item.name for item in told.standing} == set(SOME) - {"healthy-older-server"}
    (crashing,) = [item for item in told.standing if item.name == "weights-70b-on-one-card"]
    assert crashing.times == 3  # the starts of a crash loop are one row
    (killed,) = [item for item in told.standing if item.name == "killed-while-loading"]
    assert killed.host == "gpu-node-03"  # as the evidence names it, not the folder
    assert killed.title == "Host memory ran out, not the GPU"

    assert run(["sweep", "--store", str(store), "--mark", f"{killed.fingerprint[:8]}=gone", "--note", "128 GiB"]) == 0
    states.mark(str(store), crashing.fingerprint, "acknowledged", "ordered", Access(), FIRST)
    again = night(store, fleet, SECOND)
    found = {item.name: item for item in again.standing}
    assert (found["killed-while-loading"].state, found["killed-while-loading"].note) == ("gone", "128 GiB")
    assert (found["weights-70b-on-one-card"].state, found["weights-70b-on-one-card"].note) == (
        "acknowledged",
        "ordered",
    )
    assert found["startup-probe-too-short"].state == "known"
    assert [item.state for item in again.standing] == ["known", "acknowledged", "gone"]

    states.mark(str(store), crashing.fingerprint, "known", "", Access())
    assert {item.state for item in night(store, fleet, THIRD).standing} == {"known", "gone"}


def test_a_bundle_that_was_moved_keeps_its_incidents(fleet: Path, tmp_path: Path) -> None:
    """Its new place is a copy of what the store knows: nothing is new, nothing vanishes, and the row names the new place."""
    store, moved = tmp_path / "store", tmp_path / "archive" / "2026"
    before = night(store, fleet, FIRST)
    moved.parent.mkdir()
    fleet.rename(moved)
    after = night(store, moved, SECOND, reports=tmp_path / "reports", retention_days=365)
    again = night(store, moved, THIRD, reports=tmp_path / "reports", retention_days=365)
    for told in (after, again):
        assert {(item.fingerprint, item.name, item.since) for item in told.standing} == {
            (item.fingerprint, item.name, FIRST) for item in before.standing
        }
        assert {item.state for item in told.standing} == {"known"} and told.new_incidents == 0
        assert all(item.bundle.startswith(str(moved)) and item.page for item in told.standing)
    # where both places are there, the older one speaks
    shutil.copytree(moved, fleet)
    assert len(night(store, tmp_path, "2026-11-23").standing) == len(before.standing)


def test_a_night_that_read_nothing_shows_no_trends_and_is_not_green(fleet: Path, tmp_path: Path) -> None:
    night(tmp_path / "store", fleet, FIRST)
    quiet = night(tmp_path / "store", fleet, SECOND)
    assert quiet.counts.read == 0 and quiet.trends and quiet.standing
    page = FORMS["html"](quiet)
    assert 'class="verdict undecided"' in page and ">Trends<" not in page
    assert "Of those read" not in FORMS["terminal"](quiet)


def test_what_is_not_known_is_left_out_of_a_row(tmp_path: Path) -> None:
    line = "ERROR 06-20 08:00:06 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 84.00 MiB. GPU 0 has a total capacity of 39.49 GiB of which 62.56 MiB is free.\n"
    (tmp_path / "fleet" / "thin").mkdir(parents=True)
    (tmp_path / "fleet" / "thin" / "vllm.log").write_text(line)
    told = night(tmp_path / "store", tmp_path / "fleet", FIRST)
    (only,) = told.standing
    assert (only.host, only.model) == (None, None)
    for form in ("terminal", "markdown", "html"):
        page = FORMS[form](told)
        assert "unknown;" not in page and "model unknown" not in page and "host unknown" not in page, form
        assert "Jun 20 08:00" in page and "year unknown" in page, form


def test_what_cured_one_alike_is_told(fleet: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    told = night(store, fleet, FIRST)
    (killed,) = [item for item in told.standing if item.name == "killed-while-loading"]
    states.mark(str(store), killed.fingerprint, "gone", "offload of 16", Access(), FIRST)
    other = fleet / "another"
    shutil.copytree(SAMPLES / "killed-while-loading", other)
    log = other / "vllm-previous.log"
    log.write_text(log.read_text().replace("0.14.1", "0.14.0"))
    (fresh,) = [item for item in night(store, fleet, SECOND).standing if item.name == "another"]
    assert (fresh.state, fresh.cured) == ("new", "offload of 16")


def test_a_mark_needs_one_incident(fleet: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    night(store, fleet, FIRST)
    with pytest.raises(UsageError, match="no incident has"):
        states.mark(str(store), "zzz", "gone", "", Access())
    with pytest.raises(UsageError, match="incidents have a fingerprint"):
        states.mark(str(store), "", "gone", "", Access())
    with pytest.raises(UsageError, match="state healed is unknown"):
        states.mark(str(store), "", "healed", "", Access())


def test_a_page_per_bundle_is_written_and_linked(fleet: Path, tmp_path: Path) -> None:
    pages = tmp_path / "out" / "reports"
    told = night(tmp_path / "store", fleet, FIRST, reports=pages)
    assert len(list(pages.iterdir())) == len(SOME)
    for item in told.standing:
        assert item.page is not None
        assert item.title.split(",")[0] in (tmp_path / "out" / item.page).read_text(encoding="utf-8")
    again = night(tmp_path / "store", fleet, SECOND, reports=pages)  # nothing is read, the pages are there
    assert [item.page for item in again.standing] == [item.page for item in told.standing]


def test_program_text_and_wrappers_are_no_bundles(fleet: Path) -> None:
    (fleet / "tools").mkdir()
    (fleet / "tools" / "main.py").write_text("raise MemoryError('CUDA out of memory')\n")
    (fleet / "README.md").write_text("# bundles\n")
    (fleet / SOME[0] / "collect.py").write_text("print(1)\n")
    found, _ = find([str(fleet)], "folder", Access(), 0)
    assert sorted(each.name for each in found) == sorted(SOME)
    members = next(each for each in found if each.name == SOME[0]).files
    assert any(file.address.endswith("collect.py") for file in members)  # inside of a bundle it stays
