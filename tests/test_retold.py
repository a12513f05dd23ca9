"""Labelled cases whose evidence is told in another form keep their first cause: a part of `retold.py`, which tries them all."""

from __future__ import annotations

from pathlib import Path

import pytest

import retold

ROUNDS = Path(__file__).parent / "rounds"
pytestmark = pytest.mark.skipif(
    not ROUNDS.is_dir(), reason="the rounds of first runs are part of a checkout, not of an sdist"
)
PAIRS = (
    # a case, and the ways in which its tables or its log are told
    ("r15/r15-23-eight-thousand-two-hundred-nine", ("table-semicolon", "table-json-lines")),
    ("r5/r5-17-eight-cards-one-used", ("table-markdown", "table-renamed")),
    ("t3/t3-43-kill-on-the-same-node", ("table-aligned",)),
    ("r12/r12-04-a-b-a-b", ("table-json-array", "table-renamed")),
    ("r16/r16-16-eight-times-the-same-work", ("table-renamed",)),
    ("r23/r23-14-after-every-batch-higher", ("log-docker-json", "log-loki-jsonl", "log-one-line")),
)


@pytest.mark.parametrize(("case", "ways"), PAIRS, ids=[case.partition("/")[2] for case, _ in PAIRS])
def test_the_first_cause_stays_however_the_evidence_is_told(case: str, ways: tuple[str, ...]) -> None:
    found = list(retold.tried(ROUNDS / case, ways))
    assert [one.way for one in found] == list(ways), "a way that changes nothing, or a verdict that is a guess"
    assert [(one.way, one.after.cause) for one in found if not one.stays] == []


def test_a_table_is_told_under_names_of_other_tools() -> None:
    files = {"smi.csv": b"timestamp,index,memory.used [MiB]\na,0,5\nb,1,6\nc,0,7\n", "a.log": b"no table\n"}
    told = retold.WAYS["table-renamed"](files)
    assert told["smi.csv"].startswith(b"time,gpu_index,fb_used_mib") and told["a.log"] == files["a.log"]


def test_a_way_that_changes_the_verdict_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = ROUNDS / "r15/r15-23-eight-thousand-two-hundred-nine"
    monkeypatch.setitem(retold.WAYS, "lost", lambda files: {"note.txt": b"nothing is left of it\n"})
    (one,) = retold.tried(case, ("lost",))
    assert not one.stays
